"""Seven ways in which a public proxy breaks against the real binary, asked of the whole gateway.

Each is asked at the door that clients use; `test_known_defects` asks the same of the transport.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from isthmus.testing import Gate, error, stream
from real.codex_backend.house import CHAT_WEATHER, House, answers, calls_in, chat_calls, finish_reasons
from real.codex_backend.rig import (
    WEATHER,
    calls,
    closed_message,
    completed,
    opened_message,
    outputs_in,
    real,
    says,
    text_delta,
)
from talking import message_text

pytestmark = real

CALL = ("call_a", "get_weather", "{}")
SOON = 60.0
"""Seconds; the proxy took its whole timeout, ours would be 900."""


def test_defect_1_tools_are_accepted_and_a_refusal_kills_nothing(house: House) -> None:
    house.wait_until(lambda: house.health.pid is not None)
    pid = house.health.pid
    house.script(says("Fine"), says("Alive"))
    assert message_text(house.create(house.ask(tools=[WEATHER]))) == "Fine"
    reserved = {**WEATHER, "name": "mcp__server__tool"}
    assert message_text(house.create(house.ask(tools=[reserved]))) == "Alive"
    assert house.get("/health").status == 200
    assert house.health.pid == pid


def test_defect_2_tokens_stream_one_by_one(house: House) -> None:
    gate = Gate("rest")
    parts = [*opened_message(), text_delta("a"), gate, text_delta("b"), closed_message("ab"), completed()]
    house.script(stream(parts, done=False))
    with house.streaming("/v1/chat/completions", house.say(stream=True)) as chunks:
        content = (chunk["choices"][0]["delta"].get("content") for chunk in chunks)
        assert next(text for text in content if text) == "a"
        gate.open()


def test_defect_3_a_chat_stream_ends_at_once_after_its_tool_call(house: House) -> None:
    house.script(calls(CALL))
    began = time.monotonic()
    chunks = house.chat_stream(house.say(tools=[CHAT_WEATHER]))
    assert time.monotonic() - began < SOON
    assert chat_calls(chunks) == [CALL]
    assert finish_reasons(chunks) == ["tool_calls"]


def test_defect_4_a_whole_chat_answer_keeps_its_tool_call(house: House) -> None:
    house.script(calls(CALL))
    (choice,) = house.chat(house.say(tools=[CHAT_WEATHER]))["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert [call["id"] for call in choice["message"]["tool_calls"]] == ["call_a"]


def test_defect_5_an_output_reaches_the_model_once_and_nobody_is_asked_twice(house: House) -> None:
    house.script(calls(CALL), says("Done"))
    first = house.create(house.ask(tools=[WEATHER]))
    assert calls_in(first) == [CALL]
    house.create(house.ask(answers(first, call_a="21C"), tools=[WEATHER], previous_response_id=first["id"]))
    assert outputs_in(house.sent[1]) == [("call_a", "21C")]
    assert len(house.sent) == 2
    assert len(set(house.threads)) == 1


def test_defect_6_a_whole_response_has_its_text(house: House) -> None:
    house.script(stream([closed_message("Whole"), completed()], done=False))
    response = house.create(house.ask())
    assert message_text(response) == "Whole"
    assert [item["type"] for item in response["output"]] == ["message"]


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/chat/completions", {"stream": True}),
        ("/v1/chat/completions", {}),
        ("/v1/responses", {"stream": True}),
        ("/v1/responses", {}),
    ],
    ids=["chat stream", "chat whole", "responses stream", "responses whole"],
)
def test_defect_7_a_failed_turn_ends_at_once_with_the_real_error(
    house: House, path: str, fields: dict[str, Any]
) -> None:
    house.script(error(400, "the real reason"))
    began = time.monotonic()
    body = house.say() if "chat" in path else house.ask()
    reply = house.post(path, {**body, **fields})
    assert time.monotonic() - began < SOON
    assert reply.status == 400
    assert reply.error["message"] == "provider `codex`: the real reason"
