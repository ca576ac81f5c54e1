"""The cases of the published compliance suite over WebSocket, by its own names, from the specification's facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from socketing import Socket, open_socket
from specified import Specified
from wire import document

Json = dict[str, Any]


def said(text: str) -> list[Json]:
    return [{"type": "message", "role": "user", "content": text}]


@pytest.fixture
def socket(asked: Specified) -> Iterator[Socket]:
    with open_socket(asked.url) as socket:
        yield socket


def turn(asked: Specified, socket: Socket, input: Any, **more: Any) -> Json:
    """One turn, of which every event, and the response, is as the specification has it."""
    socket.ask({"model": asked.model, "input": input, "store": False, **more})
    events = socket.rest()
    for event in events:
        assert document.knows_event(event["type"]), event["type"]
        assert document.judge_event(event) == [], event
    response: Json = events[-1]["response"]
    assert document.judge("ResponseResource", response) == []
    assert response["status"] == "completed"
    return response


def code(asked: Specified, socket: Socket, input: Any, **more: Any) -> str:
    socket.ask({"model": asked.model, "input": input, "store": False, **more})
    frame = socket.refusal()
    assert document.judge("WebSocketErrorEvent", frame) == [], frame
    return str(frame["error"]["code"])


def test_websocket_response(asked: Specified, socket: Socket) -> None:
    assert turn(asked, socket, said("Count from 1 to 5."), store=True)["output"]


def test_websocket_sequential_responses(asked: Specified, socket: Socket) -> None:
    for text in ("First.", "Second."):
        turn(asked, socket, said(text))


def test_websocket_continuation(asked: Specified, socket: Socket) -> None:
    first = turn(asked, socket, said("My name is Alice."))
    turn(asked, socket, said("What is my name?"), previous_response_id=first["id"])


def test_websocket_reconnect_store_false_recovery(asked: Specified, socket: Socket) -> None:
    first = turn(asked, socket, said("Remember this."))
    with open_socket(asked.url) as other:
        wanted = "previous_response_not_found"
        assert code(asked, other, said("What?"), previous_response_id=first["id"]) == wanted
        turn(asked, other, said("Then anew."))


def test_websocket_previous_response_not_found(asked: Specified, socket: Socket) -> None:
    assert code(asked, socket, said("Hi."), previous_response_id="resp_nobody") == "previous_response_not_found"


def test_websocket_failed_continuation_evicts_cache(asked: Specified, socket: Socket) -> None:
    first = turn(asked, socket, said("Hi."))
    unknown = [{"type": "function_call_output", "call_id": "call_nobody", "output": "{}"}]
    assert code(asked, socket, unknown, previous_response_id=first["id"]) != "previous_response_not_found"
    assert code(asked, socket, said("Again."), previous_response_id=first["id"]) == "previous_response_not_found"


def test_websocket_compact_new_chain(asked: Specified, socket: Socket) -> None:
    talk = [*said("Hi."), {"type": "message", "role": "assistant", "content": "Hello!"}]
    window = asked.post("/v1/responses/compact", {"model": asked.model, "input": talk}).json["output"]
    turn(asked, socket, [*window, *said("Go on.")], tools=[])
