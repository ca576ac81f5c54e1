"""What the specification demands of a server that offers WebSocket, and the published suite does not notice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from socketing import Socket, open_socket
from specified import Specified
from wire import document


@pytest.fixture
def socket(asked: Specified) -> Iterator[Socket]:
    with open_socket(asked.url) as socket:
        yield socket


def test_a_socket_tells_the_events_of_a_stream_and_no_done(asked: Specified, socket: Socket) -> None:
    body = {"model": asked.model, "input": "Count from 1 to 5.", "store": False}
    over_sse, _ = asked.stream(body)
    socket.ask(body)
    assert [event["type"] for event in socket.rest()] == [event["type"] for event in over_sse]
    assert all(isinstance(frame, dict) for frame in socket.seen)


def test_one_response_of_a_socket_is_in_flight_at_a_time(asked: Specified, socket: Socket) -> None:
    for text in ("One.", "Two.", "Three."):
        socket.ask({"model": asked.model, "input": text, "store": False})
    ids = [socket.rest()[-1]["response"]["id"] for _ in range(3)]
    assert len({*ids}) == 3
    ends = [index for index, event in enumerate(socket.seen) if event["type"] == "response.completed"]
    begins = [index for index, event in enumerate(socket.seen) if event["type"] == "response.created"]
    assert all(begin > end for begin, end in zip(begins[1:], ends, strict=False))


def test_a_failure_over_a_socket_has_its_status_and_code(asked: Specified, socket: Socket) -> None:
    status, code, param = socket.refused({"model": asked.model, "input": 7})
    assert (status, code, param) == (400, "invalid_type", "input")


def test_a_socket_lives_for_sixty_minutes(asked: Specified, socket: Socket) -> None:
    asked.gateway.skip(3599)
    socket.answer({"model": asked.model, "input": "Hi.", "store": False})
    asked.gateway.skip(1)
    socket.closed()
    last = socket.seen[-1]
    assert (last["type"], last["status"], last["error"]["code"]) == ("error", 400, "websocket_connection_limit_reached")
    assert document.judge("WebSocketErrorEvent", last) == []


def test_a_window_is_no_parent(asked: Specified, socket: Socket) -> None:
    window = asked.post("/v1/responses/compact", {"model": asked.model, "input": "Hi."}).json
    ask = {"model": asked.model, "input": "Go on.", "store": False, "previous_response_id": window["id"]}
    assert socket.refused(ask)[1] == "previous_response_not_found"


def test_the_parent_of_a_failed_continuation_is_gone(asked: Specified, socket: Socket) -> None:
    ask = {"model": asked.model, "input": "Hi.", "store": False}
    ask["previous_response_id"] = socket.answer(ask)["id"]
    assert socket.refused({**ask, "temperature": "hot"})[0] == 400
    assert socket.refused(ask)[1] == "previous_response_not_found"
