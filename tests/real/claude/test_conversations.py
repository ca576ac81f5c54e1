"""Long conversations: Claude Code keeps everything itself and stores nothing here, and yet no thought is lost."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream, chat, error
from real.claude.rig import MODELS, Rig, gateway_config, real, results, rig
from real.claude.vendors import DEEPSEEK, GLM, LLAMA, MISTRAL, playing, thinking_in_content
from serving import running_gateway_server

pytestmark = real

TURNS = 30


@pytest.mark.parametrize("target", MODELS)
def test_thirty_tool_turns_bring_every_thought_back_and_never_change_what_was_sent(tmp_path: Path, target: str) -> None:
    # `call_0` in every turn, as some vendors count: each must still find its own result.
    think = thinking_in_content if target == MISTRAL else chat
    steps = [
        think(f"Step {n}.", reasoning=f"thought {n}", calls=[("call_0", "Bash", {"command": f"echo n{n}"})])
        for n in range(TURNS)
    ]
    with rig(tmp_path, *steps, chat("All done."), target=target) as it:
        outcome = it.run("go on", window=1_000_000).worked()
    assert outcome.said == "All done."
    assert [str(result).strip() for result in results(it.bodies[-1])] == [f"n{n}" for n in range(TURNS)]
    for number, body in enumerate(it.bodies):
        acted = [message for message in body["messages"] if message.get("tool_calls")]
        assert len(acted) == number
        for n, message in enumerate(acted):
            assert _thought(message) == (f"thought {n}" if target != LLAMA else None)
    for earlier, later in zip(it.upstream.requests, it.upstream.requests[1:], strict=False):
        assert _prefix(earlier.body) == _prefix(later.body)[: len(_prefix(earlier.body))]
        assert earlier.json["tools"] == later.json["tools"]


def _thought(message: dict[str, Any]) -> str | None:
    if isinstance(message.get("content"), list):
        for part in message["content"]:
            if part["type"] == "thinking":
                return "".join(piece["text"] for piece in part["thinking"])
    return message.get("reasoning_content") or message.get("reasoning")


def _prefix(body: bytes) -> bytes:
    """The messages as they were written, without the bracket that ends them: what a prompt cache compares."""
    start = body.index(b'"messages":[')
    messages = json.dumps(json.loads(body)["messages"], separators=(",", ":"), ensure_ascii=False).encode()
    assert body[start:].startswith(b'"messages":' + messages), "the messages are written compactly, in one piece"
    return messages[:-1]


@pytest.mark.parametrize(("target", "kept"), [(GLM, "why hello"), (DEEPSEEK, None)], ids=["glm", "deepseek"])
def test_a_resumed_conversation_brings_back_what_the_models_rule_asks_for(
    tmp_path: Path, target: str, kept: str | None
) -> None:
    with rig(tmp_path, chat("Hello.", reasoning="why hello"), chat("Again."), target=target) as it:
        first = it.run("hi").worked()
        again = it.run("and again", "--resume", first.session).worked()
    assert (again.said, again.session) == ("Again.", first.session)
    spoken = [message for message in it.bodies[1]["messages"] if message["role"] == "assistant"]
    assert [(message["content"], message.get("reasoning_content")) for message in spoken] == [("Hello.", kept)]


def test_a_conversation_goes_on_with_another_model_of_another_vendor(tmp_path: Path) -> None:
    """Claude Code drops all thinking when the model changes; nothing of it is missed."""
    call = ("call_bash1", "Bash", {"command": "echo one"})
    refusals: list[str] = []
    first = playing(DEEPSEEK, refusals, chat(None, reasoning="one", calls=[call]), chat("One.", reasoning="said"))
    second = playing(GLM, refusals, chat(None, reasoning="two", calls=[call]), chat("Two."))
    with ScriptedUpstream.running([*first, *second]) as upstream:
        other = f'[providers.zhipu]\nbase_url = "{upstream.base_url}"\napi_key = "x"\nretries = 0\n'
        with running_gateway_server(gateway_config(upstream.base_url, DEEPSEEK, more=other)) as gateway:
            it = Rig(tmp_path, upstream, gateway, DEEPSEEK, refusals)
            begun = it.run("first").worked()
            ended = it.run("second", "--resume", begun.session, model=GLM).worked()
    assert (begun.said, ended.said) == ("One.", "Two.")
    assert [body["model"] for body in it.bodies] == ["deepseek-v4-pro"] * 2 + ["glm-5.3"] * 2
    assert [str(result).strip() for result in results(it.bodies[3])] == ["one", "one"]


@pytest.mark.parametrize("target", MODELS)
def test_compaction_by_hand_goes_on_from_the_summary(tmp_path: Path, target: str) -> None:
    call = ("call_bash1", "Bash", {"command": "echo first"})
    steps = [
        chat(None, reasoning="start", calls=[call]),
        chat("It printed first.", reasoning="so"),
        chat("<analysis>a</analysis><summary>SUMMARY: a command printed first.</summary>"),
        chat("After it."),
    ]
    with rig(tmp_path, *steps, target=target) as it:
        session = it.run("work").worked().session
        it.run("/compact", "--resume", session).worked()
        after = it.run("go on", "--resume", session).worked()
    assert after.said == "After it."
    assert "SUMMARY: a command printed first." in json.dumps(it.bodies[3]["messages"])
    assert not any(message.get("tool_calls") for message in it.bodies[3]["messages"])


FULL = {
    "by what the model has used": [chat("Much.", usage=(59_000, 10))],
    "by its refusal": [
        chat("Much.", usage=(9_000, 10)),
        error(400, "This model's maximum context length is 64000 tokens. However, you requested 70123 tokens"),
    ],
}


@pytest.mark.parametrize("target", MODELS)
@pytest.mark.parametrize("how", FULL)
def test_a_full_window_is_compacted_and_the_work_goes_on(tmp_path: Path, target: str, how: str) -> None:
    first, *more = FULL[how]
    summary = chat("<summary>SUMMARY: much was said.</summary>", usage=(300, 10))
    with rig(tmp_path, first, *more, summary, chat("After it.", usage=(400, 10)), target=target) as it:
        session = it.run("work", window=64_000).worked().session
        after = it.run("go on", "--resume", session, window=64_000).worked()
    assert after.said == "After it."
    assert len(after.compactions) == 1
    assert "SUMMARY: much was said." in json.dumps(it.bodies[-1]["messages"])


def test_a_window_smaller_than_it_was_told_is_found_out_and_compacted(tmp_path: Path) -> None:
    """As after a change to another model: Claude Code is told of one window, when it starts."""
    refused = error(400, "This model's maximum context length is 64000 tokens. However, you requested 70123 tokens")
    summary = chat("<summary>SUMMARY: much was said.</summary>", usage=(300, 10))
    with rig(tmp_path, chat("Read.", usage=(70_000, 10)), refused, summary, chat("After it.")) as it:
        session = it.run("work", window=1_000_000).worked().session
        smaller = "deepseek/deepseek-v4-flash"
        after = it.run("go on", "--resume", session, window=1_000_000, model=smaller).worked()
    assert after.said == "After it."
    assert len(after.compactions) == 1
    assert it.bodies[-1]["model"] == "deepseek-v4-flash"
    assert "SUMMARY: much was said." in json.dumps(it.bodies[-1]["messages"])


@pytest.mark.parametrize("target", [LLAMA, DEEPSEEK])
def test_an_answer_that_was_cut_by_its_length_is_gone_on_with(tmp_path: Path, target: str) -> None:
    with rig(tmp_path, chat("Half an ans", finish="length"), chat("wer."), target=target) as it:
        assert it.run("talk").worked().said.endswith("wer.")
    assert len(it.bodies) == 2


def test_the_context_is_counted_by_the_gateway_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Claude Code asks for some twenty counts at once; none of them costs anything, and none is a failure."""
    with caplog.at_level(logging.INFO, "isthmus"), rig(tmp_path, chat("Hello.")) as it:
        session = it.run("hi").worked().session
        counted = it.run("/context", "--resume", session, window=64_000).worked()
    assert "64k" in counted.said
    assert len(it.bodies) == 1
    counts = [line for line in caplog.messages if "/count_tokens" in line]
    assert len(counts) > 10
    assert all("status=200" in line for line in counts)
