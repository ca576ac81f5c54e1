"""How sockets end, and what they may not keep running: clients that leave, or do not read; age, and the shutdown."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from flowing import PLAIN, Flow
from isthmus.testing import Gate, chat, chat_chunks, stream
from socketing import Socket, open_socket
from waiting import until

HI = {"model": PLAIN, "input": "hi", "store": False}
HALF = chat_chunks("half an answer")[:2]
FLOOD = chat_chunks("a word and a blank " * 300_000, pieces=4_000)


def wait_until_over(flow: Flow) -> None:
    until(lambda: not len(flow.server.gateway.runs), "the run goes on for ever")


def endless(gate: Gate) -> Any:
    return stream([*HALF, gate], done=False)


@pytest.mark.parametrize("goes", ["says goodbye", "is cut"])
def test_a_client_that_leaves_ends_all_that_runs_there(special: Callable[..., Flow], goes: str) -> None:
    flow = special(
        store="memory", extra="[server]\nping = 0\nheartbeat = 0"
    )  # no sign of life finds that nobody is there
    gates = [Gate(), Gate()]
    flow.script(*map(endless, gates))
    with open_socket(flow.server.url) as talk:
        for number, lane in enumerate(("a", "b"), start=1):
            talk.ask(HI, lane)
            flow.wait_sent(number)
            talk.until("response.output_text.delta", lane)
        talk.ask(HI, "a")  # waits, and is never asked
        talk.cut() if goes == "is cut" else talk.connection.close()
        for request in flow.upstream.requests[-2:]:
            request.closed.wait()
        wait_until_over(flow)
    assert len(flow.sent) == 2
    for gate in gates:
        gate.open()


def test_what_a_client_left_is_stored_as_cancelled_with_what_it_had(flow: Flow) -> None:
    gate = Gate()
    flow.script(endless(gate))
    with open_socket(flow.server.url) as talk:
        talk.ask({**HI, "store": True})
        id = talk.next_of()["response"]["id"]
        talk.until("response.output_text.delta")
        talk.cut()
        flow.wait_sent().closed.wait()
        wait_until_over(flow)
    left = flow.get(f"/v1/responses/{id}").json
    assert left["status"] == "cancelled"
    assert left["output"][0]["content"][0]["text"]
    gate.open()


def test_a_response_is_deleted_by_its_id_while_a_socket_is_told_it(flow: Flow) -> None:
    gate = Gate()
    flow.script(endless(gate), chat("ok"))
    with open_socket(flow.server.url) as talk:
        talk.ask({**HI, "store": True}, "a")
        id = talk.next_of("a")["response"]["id"]
        talk.until("response.output_text.delta", "a")
        assert flow.request("DELETE", f"/v1/responses/{id}").json["deleted"]
        assert talk.rest("a", begun=1)[-1]["response"]["status"] == "cancelled"
        flow.wait_sent().closed.wait()
        assert flow.get(f"/v1/responses/{id}").status == 404
        assert talk.answer(HI, "a")["output_text"] == "ok"
    gate.open()


def test_many_sockets_cut_in_mid_answer_leave_nothing_running_upstream(flow: Flow) -> None:
    count, gate = 20, Gate()
    flow.script(*[endless(gate)] * count)
    with ExitStack() as stack:
        sockets = [stack.enter_context(open_socket(flow.server.url)) for _ in range(count)]
        for socket in sockets:
            socket.ask(HI)
        for socket in sockets:
            socket.until("response.output_text.delta")
        for socket in sockets:
            socket.cut()
        for request in flow.upstream.requests[-count:]:
            request.closed.wait()
        wait_until_over(flow)
    gate.open()


def test_a_client_that_does_not_read_stops_its_upstream(flow: Flow) -> None:
    """Nothing is piled up for it: neither the answer nor pongs."""
    flow.script(stream(FLOOD))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI)
        with _unread(talk):
            until(lambda: len(flow.server.gateway.runs))
            (run,) = flow.server.gateway.runs._runs.values()
            flow.server.wait_until_stuck(run.id)
            sent = flow.upstream.requests[-1]
            assert not sent.closed.is_set()
        assert talk.rest(begun=1)[-1]["response"]["status"] == "completed"


def test_one_that_does_not_read_and_leaves_ends_it(flow: Flow) -> None:
    flow.script(stream(FLOOD))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI)
        with _unread(talk):
            until(lambda: len(flow.server.gateway.runs))
            (run,) = flow.server.gateway.runs._runs.values()
            flow.server.wait_until_stuck(run.id)
            talk.cut()
            flow.upstream.requests[-1].closed.wait()
            wait_until_over(flow)


class _unread:  # reads as a word
    """The client's reader stands still inside."""

    def __init__(self, talk: Socket) -> None:
        self._talk = talk
        self._go_on = threading.Event()

    def __enter__(self) -> None:
        receive, go_on = self._talk.connection.protocol.receive_data, self._go_on

        def wait(data: bytes) -> None:
            go_on.wait(60)
            receive(data)

        self._talk.connection.protocol.receive_data = wait  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        self._go_on.set()


# ── the shutdown ───────────────────────────────────────────────────────────────────────────────────────


def test_a_shutdown_lets_what_runs_end_and_closes_with_1001(special: Callable[..., Flow]) -> None:
    flow, gate = special(store="memory"), Gate()
    flow.script(stream([*HALF, gate, *chat_chunks("half an answer")[2:]]))
    with open_socket(flow.server.url) as idle, open_socket(flow.server.url) as talk:
        talk.ask(HI)
        talk.until("response.output_text.delta")
        talk.ask({**HI, "input": "too late"})
        stopping = threading.Thread(target=flow.server.stop)
        stopping.start()
        assert idle.closed() == 1001
        assert (idle.seen[-1]["status"], idle.seen[-1]["error"]["code"]) == (503, "draining")
        gate.open()
        assert talk.rest(begun=1)[-1]["response"]["output_text"] == "half an answer"
        assert talk.refusal()["error"]["code"] == "draining"
        assert talk.closed() == 1001
        stopping.join(60)


def test_after_the_grace_period_a_response_ends_with_its_terminal_event(special: Callable[..., Flow]) -> None:
    flow, gate = special(store="memory", extra="[server]\ngrace = 0.01"), Gate()
    flow.script(endless(gate))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI, "a")
        talk.until("response.output_text.delta", "a")
        stopping = threading.Thread(target=flow.server.stop)
        stopping.start()
        assert talk.rest("a", begun=1)[-1]["response"]["error"]["code"] == "server_is_overloaded"
        assert talk.closed() == 1001
        stopping.join(60)
    gate.open()


# ── age ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_socket_that_is_old_enough_is_told_so_and_closed(special: Callable[..., Flow]) -> None:
    flow = special(store="memory")
    with open_socket(flow.server.url) as talk:
        flow.script(chat("ok"))
        talk.answer(HI)
        flow.server.skip(3599)
        flow.script(chat("ok"))
        talk.answer(HI)
        flow.server.skip(1)
        assert talk.closed() == 1001
        assert (talk.seen[-1]["status"], talk.seen[-1]["error"]["code"]) == (400, "websocket_connection_limit_reached")
        assert "stream_id" not in talk.seen[-1]


def test_what_runs_when_it_gets_too_old_may_end(special: Callable[..., Flow]) -> None:
    flow, gate = special(store="memory", extra="[websocket]\nmax_age = 60"), Gate()
    flow.script(stream([*HALF, gate, *chat_chunks("half an answer")[2:]]))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI, "a")
        talk.until("response.output_text.delta", "a")
        flow.server.skip(61)
        assert talk.refused(HI, "b") == (400, "websocket_connection_limit_reached", None)
        gate.open()
        assert talk.rest("a", begun=1)[-1]["type"] == "response.completed"
        assert talk.closed() == 1001


# ── signs of life ──────────────────────────────────────────────────────────────────────────────────────


def test_a_silent_response_shows_that_it_lives(special: Callable[..., Flow]) -> None:
    flow, gate = special(store="memory"), Gate()
    flow.script(stream([*HALF, gate, *chat_chunks("half an answer")[2:]]))
    with open_socket(flow.server.url) as talk:
        talk.ask(HI, "a")
        talk.until("response.output_text.delta", "a")
        flow.server.skip(16)
        assert talk.next_of("a")["type"] == "response.in_progress"
        gate.open()
        talk.rest("a", begun=1)


def test_a_client_is_pinged_and_one_that_never_answers_is_closed(special: Callable[..., Flow]) -> None:
    flow = special(store="memory")
    with open_socket(flow.server.url) as talk:
        pinged = threading.Event()
        received = talk.connection.protocol.receive_data

        def listen(data: bytes) -> None:
            if data[0] == 0x89:
                pinged.set()
            elif data[0] != 0x89:
                received(data)

        talk.connection.protocol.receive_data = listen  # type: ignore[method-assign]
        flow.server.skip(21)
        assert pinged.wait(60)
        flow.server.skip(301)
        assert talk.closed() == 1011
