"""Long conversations: Codex keeps everything itself and stores nothing here, and yet no thought is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.bridge.history.compact import ASK, INSTRUCTIONS
from isthmus.testing import chat
from real.codex.rig import CLASSIC, DEEPSEEK, GLM, LITE, LLAMA, OURS, UNKNOWN, real, rig, shell_arguments, shell_call
from socketing import watch_frames

pytestmark = real

TURNS = 40


@pytest.mark.parametrize(
    ("target", "slug"),
    [(DEEPSEEK, CLASSIC), (DEEPSEEK, LITE), (GLM, OURS), (LLAMA, UNKNOWN)],
    ids=["deepseek-classic", "deepseek-lite", "glm-ours", "llama-unknown"],
)
def test_forty_tool_turns_bring_every_thought_back_as_the_models_rule_demands(
    tmp_path: Path, target: str, slug: str
) -> None:
    # `call_0` in every turn, as some vendors count: each must still find its own result.
    steps = [
        chat(None, reasoning=f"thought {n}", calls=[("call_0", shell_call(slug), shell_arguments(slug, f"echo n{n}"))])
        for n in range(TURNS)
    ]
    with rig(tmp_path, *steps, chat("All done.", reasoning="the end"), target=target) as it:
        outcome = it.exec("go on", slug=slug).worked()
    assert outcome.said == ["All done."]
    assert [output for output, _ in outcome.commands] == [f"n{n}\n" for n in range(TURNS)]
    for number, body in enumerate(it.bodies):
        acted = [message for message in body["messages"] if message.get("tool_calls")]
        assert len(acted) == number
        wanted = [f"thought {n}" for n in range(number)] if target != LLAMA else [None] * number
        assert [message.get("reasoning_content") for message in acted] == wanted
    assert _results(it.bodies[-1]) == [f"n{n}" for n in range(TURNS)]


def test_earlier_messages_never_change_so_that_prompt_caches_stay_warm(tmp_path: Path) -> None:
    steps = [
        chat("Next.", reasoning=f"t{n}", calls=[(f"c{n}", "exec_command", {"cmd": f"echo {n}"})]) for n in range(4)
    ]
    with rig(tmp_path, *steps, chat("Done.")) as it:
        it.exec("go on", slug=OURS).worked()
    for earlier, later in zip(it.bodies, it.bodies[1:], strict=False):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]
        assert later["tools"] == earlier["tools"]


@pytest.mark.parametrize(("target", "kept"), [(GLM, "why hello"), (DEEPSEEK, None)], ids=["glm", "deepseek"])
def test_a_resumed_conversation_brings_back_thoughts_of_plain_answers_where_the_rule_says_always(
    tmp_path: Path, target: str, kept: str | None
) -> None:
    with rig(tmp_path, chat("Hello.", reasoning="why hello"), chat("Again."), target=target) as it:
        it.exec("hi", slug=OURS).worked()
        it.exec("and again", "--last", slug=OURS, command=("exec", "resume")).worked()
    spoken = [message for message in it.bodies[1]["messages"] if message["role"] == "assistant"]
    assert [(message["content"], message.get("reasoning_content")) for message in spoken] == [("Hello.", kept)]


@pytest.mark.parametrize("slug", [UNKNOWN, OURS])
def test_the_models_thinking_is_shown_where_codex_asks_for_summaries(tmp_path: Path, slug: str) -> None:
    with rig(tmp_path, chat("Hi.", reasoning="They greet me.")) as it:
        outcome = it.exec("hi", slug=slug).worked()
    assert outcome.thought == ["They greet me."]


def _compacted(folder: Path, slug: str, **options: Any) -> dict[str, Any]:
    """What the model was asked to sum up by, in a session that is compacted in the middle of its work."""
    call = ("c1", shell_call(slug), shell_arguments(slug, "echo first"))
    steps: list[Any] = [
        chat(None, reasoning="start", calls=[call], usage=(9000, 10)),
        chat("SUMMARY: the first command printed first.", usage=(300, 10)),
        chat("Finished after compaction.", usage=(400, 10)),
    ]
    with rig(folder, *steps) as it:
        outcome = it.exec("work", slug=slug, root="model_auto_compact_token_limit = 5000", **options).worked()
    assert outcome.said[-1] == "Finished after compaction."
    asked, after = it.bodies[1], it.bodies[2]
    assert any("SUMMARY: the first command" in str(message["content"]) for message in after["messages"])
    assert not any(message.get("tool_calls") for message in after["messages"])
    return asked


@pytest.fixture(params=["http", "socket"])
def over(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What the provider's entry says of the way that Codex takes; and that it took it."""
    frames = watch_frames(monkeypatch)
    yield "supports_websockets = true" if request.param == "socket" else ""
    assert bool(frames) == (request.param == "socket")


@pytest.mark.parametrize("slug", [CLASSIC, LITE, UNKNOWN, OURS])
def test_compaction_in_the_middle_goes_on_from_the_summary(tmp_path: Path, slug: str, over: str) -> None:
    asked = _compacted(tmp_path, slug, provider=over)
    assert not asked.get("tools")
    assert asked["messages"][-1]["role"] == "user"


@pytest.mark.parametrize("slug", [CLASSIC, LITE, OURS])
def test_compaction_by_the_gateway_goes_on_from_the_summary(tmp_path: Path, slug: str, over: str) -> None:
    """Codex leaves it to the server where the provider is called OpenAI: it asks with a trigger, and wants one item."""
    asked = _compacted(tmp_path, slug, provider=over, named="OpenAI")
    assert asked["messages"][0]["content"] == INSTRUCTIONS
    assert asked["messages"][-1]["content"] == ASK


def _results(body: dict[str, Any]) -> list[str]:
    """The last line of every tool result, found through its own call."""
    results = {m["tool_call_id"]: m["content"] for m in body["messages"] if m["role"] == "tool"}
    calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or ()]
    assert len(set(calls)) == len(calls)
    return [str(results[id]).strip().splitlines()[-1] for id in calls]
