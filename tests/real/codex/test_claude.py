"""Codex on Claude: twenty turns of tools with thinking, and a server behind the gateway that forgives nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from real.codex.rig import CLASSIC, LITE, OURS, UNKNOWN, real, rig, shell_arguments, shell_call
from speaking_messages import called, claude, said, thought
from strict_anthropic import strictly

pytestmark = real

TURNS = 20


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-4-6", "claude-haiku-4-5"])
@pytest.mark.parametrize("slug", [CLASSIC, LITE, UNKNOWN, OURS])
def test_twenty_turns_of_tools_with_thinking_meet_no_refusal(tmp_path: Path, slug: str, model: str) -> None:
    turns = [
        claude(
            thought(f"Turn {n}"),
            called(f"toolu_{n}", shell_call(slug), **shell_arguments(slug, f"echo n{n}")),
        )
        for n in range(TURNS)
    ]
    steps = [strictly(step) for step in (*turns, claude(thought("So."), said("All done.")))]
    with rig(tmp_path, *steps, target=f"anthropic/{model}") as it:
        outcome = it.exec("go on", slug=slug, root='model_reasoning_effort = "high"').worked()
    assert outcome.said == ["All done."]
    assert [output for output, _ in outcome.commands] == [f"n{n}\n" for n in range(TURNS)]
    sent = [block for message in it.bodies[-1]["messages"] for block in message["content"]]
    thoughts = [block["thinking"] for block in sent if block["type"] == "thinking"]
    assert thoughts == [f"Turn {n}" for n in range(TURNS)]
