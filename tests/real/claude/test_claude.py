"""Claude Code on Claude, through the gateway: in by the Messages door, out by the Messages dialect, and a server behind
it that forgives nothing. What the vendor has signed comes back to it as it was."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream, Step
from real.claude.rig import Rig, gateway_config, real
from serving import running_gateway_server
from speaking_messages import called, claude, claude_error, hidden, said, thought
from strict_anthropic import refused_by_anthropic

pytestmark = real

MODELS = ["claude-opus-5-5", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-4-6", "claude-haiku-4-5"]


@contextmanager
def rig(folder: Path, *steps: Step, model: str = MODELS[0]) -> Iterator[Rig]:
    refusals: list[str] = []

    def strictly(step: Any) -> Step:
        def handle(request: Any) -> Any:
            why = refused_by_anthropic(request.json, request.headers)
            if why is None:
                return step(request) if callable(step) else step
            refusals.append(why)
            return claude_error(400, "invalid_request_error", why)

        return handle

    target = f"anthropic/{model}"
    with (
        ScriptedUpstream.running([strictly(step) for step in steps]) as upstream,
        running_gateway_server(gateway_config(upstream.base_url, target)) as gateway,
    ):
        yield Rig(folder, upstream, gateway, target, refusals)


def blocks(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [block for message in body["messages"] for block in message["content"] if block["type"] == kind]


def bare(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


@pytest.mark.parametrize("model", MODELS)
def test_it_makes_a_file_with_thinking_between_its_calls(tmp_path: Path, model: str) -> None:
    first = [thought("First the file."), said("Now."), called("toolu_1", "Write", file_path="a.txt", content="hello\n")]
    second = [thought("Then the word."), called("toolu_2", "Bash", command="cat a.txt")]
    with rig(tmp_path, claude(*first), claude(*second), claude(said("Done.")), model=model) as it:
        outcome = it.run("make a.txt", model=it.target).worked()
        assert (it.work / "a.txt").read_text() == "hello\n"
    assert (outcome.said, outcome.failed_calls) == ("Done.", [])
    sent = it.bodies[2]
    assert [bare(block) for block in blocks(sent, "thinking")] == [first[0], second[0]]
    assert [block["name"] for block in blocks(sent, "tool_use")] == ["Write", "Bash"]


@pytest.mark.parametrize("model", MODELS)
def test_twenty_turns_of_parallel_calls_meet_no_refusal_and_keep_their_prefix(tmp_path: Path, model: str) -> None:
    turns = [
        [thought(f"t{n}"), *(called(f"toolu_{n}_{m}", "Bash", command=f"echo {n}-{m}") for m in range(2))]
        for n in range(20)
    ]
    with rig(tmp_path, *(claude(*turn) for turn in turns), claude(said("All.")), model=model) as it:
        assert it.run("go on", model=it.target, window=1_000_000).worked().said == "All."
    assert [block["thinking"] for block in blocks(it.bodies[-1], "thinking")] == [f"t{n}" for n in range(20)]
    plain = [[_unmarked(message) for message in body["messages"]] for body in it.bodies]
    for earlier, later in pairwise(plain):
        assert later[: len(earlier)] == earlier
    assert all(_marks(body) <= 4 for body in it.bodies)


def _unmarked(message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "content": [bare(block) for block in message["content"]]}


def _marks(body: dict[str, Any]) -> int:
    return json.dumps(body).count('"cache_control"')


def test_hidden_thinking_and_thinking_without_words_come_back_as_they_were(tmp_path: Path) -> None:
    silent = {**thought(""), "signature": thought("")["signature"]}
    first = [silent, hidden(), called("toolu_1", "Bash", command="echo hi")]
    with rig(tmp_path, claude(*first), claude(said("Done."))) as it:
        it.run("go", model=it.target).worked()
    assistant = next(message for message in it.bodies[1]["messages"] if message["role"] == "assistant")
    assert [bare(block) for block in assistant["content"][:2]] == [silent, hidden()]


def test_a_resumed_conversation_and_a_compacted_one_go_on(tmp_path: Path) -> None:
    steps = [
        claude(thought("Run."), called("toolu_1", "Bash", command="echo hi")),
        claude(thought("So."), said("It said hi.")),
        claude(said("<summary>SUMMARY: hi was said.</summary>")),
        claude(said("After it.")),
    ]
    with rig(tmp_path, *steps) as it:
        session = it.run("work", model=it.target).worked().session
        it.run("/compact", "--resume", session, model=it.target).worked()
        assert it.run("go on", "--resume", session, model=it.target).worked().said == "After it."
    assert bare(blocks(it.bodies[2], "thinking")[0]) == thought("Run.")
    assert "SUMMARY: hi was said." in json.dumps(it.bodies[3]["messages"])


def test_usage_is_told_with_its_cached_parts(tmp_path: Path) -> None:
    used = {"input_tokens": 5, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 11, "output_tokens": 3}
    with rig(tmp_path, claude(said("Hi."), usage=used)) as it:
        told = it.run("hi", model=it.target).worked().result["usage"]
    assert {name: told[name] for name in used} == used


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")])
def test_what_may_pass_is_tried_again(tmp_path: Path, status: int, kind: str) -> None:
    with rig(tmp_path, claude_error(status, kind, "later", retry_after=1), claude(said("Now."))) as it:
        assert it.run("hi", model=it.target).worked().said == "Now."


def test_a_prompt_that_is_too_long_is_compacted(tmp_path: Path) -> None:
    steps = [
        claude(said("Much.")),
        claude_error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        claude(said("<summary>SUMMARY: much was said.</summary>")),
        claude(said("After it.")),
    ]
    with rig(tmp_path, *steps) as it:
        session = it.run("work", model=it.target).worked().session
        after = it.run("go on", "--resume", session, model=it.target).worked()
    assert (after.said, len(after.compactions)) == ("After it.", 1)
