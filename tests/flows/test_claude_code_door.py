"""What Claude Code needs of the Messages door: a half is never told as whole, a model keeps its name."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from flowing import Flow, lent
from flowing_providers import provider_flow
from isthmus.testing import CUT, chat, chat_chunks, chat_error, stream

TOOL = {"name": "Bash", "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}}}
TEXT = chat_chunks("a partial answer")[:3]
CALL = chat_chunks(None, calls=[("c1", "Bash", {"command": "touch danger"})])[:3]
TWO = chat_chunks(None, calls=[("c1", "Bash", {"command": "a"}), ("c2", "Bash", {"command": "b"})])[:7]
THOUGHT = chat_chunks("never said", reasoning="I was about to")[:3]


@pytest.fixture(scope="module")
def _house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    with provider_flow(tmp_path_factory.mktemp("broken"), {"deepseek": "uses = 'deepseek'"}) as house:
        yield house


@pytest.fixture
def flow(_house: Flow) -> Iterator[Flow]:
    with lent(_house) as mine:
        yield mine


def ask(flow: Flow) -> list[dict[str, Any]]:
    asked = {"model": "deepseek/deepseek-v4-pro", "max_tokens": 1000, "stream": True, "tools": [TOOL]}
    body = json.dumps({**asked, "messages": [{"role": "user", "content": "hi"}]}).encode()
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{flow.server.url}/v1/messages", data=body, headers=headers), timeout=60
    ) as answer:
        lines = answer.read().decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("content_block_") for event in events if event["type"] != "ping"]


@pytest.mark.parametrize("half", [TEXT, CALL, TWO, THOUGHT], ids=["text", "call", "second of two calls", "thinking"])
@pytest.mark.parametrize("end", [[CUT], [], [chat_error("boom")]], ids=["cut", "no finish reason", "error"])
def test_a_block_that_was_broken_off_by_a_failure_stays_open(flow: Flow, half: list[Any], end: list[Any]) -> None:
    flow.script(stream([*half, *end], done=False))
    events = ask(flow)
    assert events[-1]["type"] == "error"
    told = kinds(events)
    assert told.count("start") == told.count("stop") + 1
    assert told[-2] == "delta"


def test_one_that_its_length_cut_is_closed_for_it_is_an_answer(flow: Flow) -> None:
    flow.script(chat("Half an ans", reasoning="Long.", finish="length"))
    events = ask(flow)
    told = kinds(events)
    assert told.count("start") == told.count("stop") == 2
    assert told[-2:] == ["message_delta", "message_stop"]
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"
    assert [delta["delta"]["type"] for delta in events if delta["type"] == "content_block_delta"][-1] == "text_delta"


def test_a_call_that_its_length_cut_is_closed_too(flow: Flow) -> None:
    end = {**chat_chunks("x")[-2], "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
    flow.script(stream([*CALL, end]))
    events = ask(flow)
    assert kinds(events).count("start") == kinds(events).count("stop") == 1
    assert events[-2]["delta"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize("asked", ["deepseek/deepseek-v4-pro", "claude-deepseek/deepseek-v4-pro"])
@pytest.mark.parametrize("streamed", [True, False])
def test_the_model_is_called_as_it_was_asked_for(flow: Flow, asked: str, streamed: bool) -> None:
    """Claude Code throws all thinking away where the model that answered has another name."""
    flow.script(chat("Hi."))
    body = {"model": asked, "max_tokens": 9, "stream": streamed, "messages": [{"role": "user", "content": "hi"}]}
    answer = flow.post("/v1/messages", body, {"anthropic-version": "2023-06-01"})
    assert f'"model":"{asked}"' in answer.body.decode().replace(": ", ":")
