"""Words for a running response, without a socket: how they are read, kept, and what a response waits for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.bridge.limits import DEFAULT_LIMITS
from isthmus.bridge.parse import parse_request
from isthmus.config.schema import Limits
from isthmus.errors import IsthmusError
from isthmus.server.room import Room
from isthmus.server.steering import MAX_STEERS, Steering, read_steer, required_input, steer_failed, successor

WORDS = {"type": "message", "role": "user", "content": "In English!"}


def read(**frame: Any) -> Any:
    return read_steer({"type": "response.steer", **frame}, DEFAULT_LIMITS)


def running(*, finished: bool = False, steers: bool = True, compaction: Any = None, output: Any = ()) -> Any:
    plan = SimpleNamespace(steers=steers, compaction=compaction)
    return SimpleNamespace(id="resp_1", plan=plan, finished=finished, told=7, response={"output": output})


@pytest.mark.parametrize("input", ["In English!", [WORDS], [{"role": "user", "content": "In English!"}]])
def test_words_are_a_text_or_messages_of_the_user(input: Any) -> None:
    assert read(previous_response_id="resp_1", input=input).items == (WORDS,)


@pytest.mark.parametrize("input", [None, [], [{"type": "function_call_output", "call_id": "c", "output": ""}]])
def test_anything_else_is_none(input: Any) -> None:
    steer = read(previous_response_id="resp_1", input=input)
    assert steer.failure.code == "invalid_input"
    assert steer_failed(steer, steer.failure)["steer"] == {"previous_response_id": "resp_1", "input": input}


def refusal(steering: Steering) -> str:
    with pytest.raises(IsthmusError) as caught:
        steering.check(read(previous_response_id="resp_1", input="x"))
    return caught.value.code


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (running(steers=False), "steering_not_supported"),
        (running(compaction=object()), "steering_not_supported"),
        (running(finished=True), "response_already_completed"),
    ],
)
def test_what_cannot_take_words(run: Any, code: str) -> None:
    steering = Steering()
    steering.run = run
    assert refusal(steering) == code


def test_so_many_wait_and_each_for_its_own_response() -> None:
    steering, room = Steering(), Room(Limits(max_memory=0), None, 10)
    steering.run = running()
    for _ in range(MAX_STEERS):
        steering.take(read(previous_response_id="resp_1", input="x"), room.take(10))
    assert refusal(steering) == "too_many_pending_steers"
    assert (len(steering.words("resp_1")), steering.words("resp_2")) == (MAX_STEERS, [])
    assert len({steer.id for steer in steering.words("resp_1")}) == MAX_STEERS
    assert room.held == 4 * 10 * MAX_STEERS, "with what they take on their way"
    steering.give("resp_2")
    assert room.held == 4 * 10 * MAX_STEERS, "with what they take on their way"
    steering.give("resp_1")
    assert (steering.words("resp_1"), room.held) == ([], 0)


def test_words_for_which_there_is_no_room_are_refused() -> None:
    steering, room = Steering(), Room(Limits(max_serving=5, max_memory=0), None, 10)
    words = read(previous_response_id="resp_1", input="x")
    with room.take(1), pytest.raises(IsthmusError) as caught:
        steering.take(words, room.take(10))
    assert caught.value.code == "server_is_overloaded"
    steering.take(words, room.take(10))
    steering.give(None)
    assert room.held == 0


def test_what_is_over_is_not_kept() -> None:
    steering = Steering()
    steering.begin(running(), parse_request({"input": "hi"}))
    steering.end()
    assert (steering.run, steering.request, steering.last, steering.told) == (None, None, "resp_1", 7)


def test_a_response_waits_for_every_call_that_the_client_answers() -> None:
    output = [
        {"type": "message"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": ""},
        {"type": "tool_search_call", "call_id": "c3", "execution": "client"},
        {"type": "tool_search_call", "call_id": "c4", "execution": "server"},
        {"type": "mcp_approval_request", "id": "mcpr_1"},
        {"type": "web_search_call", "id": "ws_1"},
    ]
    assert required_input(running(output=output)) == [
        {"type": "function_call_output", "call_id": "c1", "name": "look"},
        {"type": "custom_tool_call_output", "call_id": "c2"},
        {"type": "tool_search_output", "call_id": "c3", "execution": "client"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
    ]


def test_a_successor_has_the_settings_of_what_it_follows() -> None:
    asked = parse_request({"model": "m", "input": "hi", "temperature": 0.5, "previous_response_id": "resp_0"})
    following = successor(asked, "resp_1", [read(previous_response_id="resp_1", input="In English!")])
    assert following.items == (WORDS,)
    body: Any = following.body
    assert (body["model"], body["temperature"], body["previous_response_id"]) == ("m", 0.5, "resp_1")
