"""Where the reference gateway breaks under stress: slow readers, shutdown, a store that fails, a crash."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from flowing import PLAIN, Flow, running_flow
from isthmus.bridge.deltas import Delta, Text
from isthmus.errors import ConfigError
from isthmus.testing import PATIENCE, Gate, ScriptedUpstream, chat, chat_chunks, stream
from isthmus.testing.replies import event
from serving import running_gateway_process, running_gateway_server
from talking import Talk, finished, message_text
from waiting import until

Json = dict[str, Any]
HELLO = {"model": PLAIN, "input": "hi", "stream": True}
HALF = chat_chunks("Half of it", usage=None, pieces=2)[:3]


def test_a_client_that_does_not_read_stops_the_upstream_from_sending(flow: Flow) -> None:
    """80 MB wait; the upstream gets rid only of what sockets and buffers hold."""
    head, word, *_ = chat_chunks("x" * 50_000, pieces=1)
    marks = [Gate(f"{number} MB") for number in range(80)]
    parts: list[Any] = [head]
    for mark in marks:
        mark.open()
        parts += [event(word) * 20, mark]
    flow.script(stream(parts))
    with flow.streaming("/v1/responses", {**HELLO, "store": False}) as events:
        flow.server.wait_until_stuck(events.until("response.created")["response"]["id"])
        assert sum(mark.reached.is_set() for mark in marks) < 40
    flow.wait_sent().closed.wait()


def test_two_hundred_streams_at_once_all_end(special: Any) -> None:
    flow = special(store="memory")
    flow.script(*(chat(f"answer {number}", pieces=5) for number in range(200)))
    texts: list[str] = []

    def ask() -> None:
        with flow.streaming("/v1/responses", HELLO) as events:
            texts.append(message_text(events.until("response.completed")["response"]))

    threads = [threading.Thread(target=ask) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(texts) == sorted(f"answer {number}" for number in range(200))


def test_more_requests_than_allowed_are_told_to_come_back(special: Any) -> None:
    flow = special(store="memory", extra="[server]\nmax_concurrent = 2")
    gates = [Gate(), Gate()]
    flow.script(*(stream([gate, *chat_chunks("ok")]) for gate in gates))
    with flow.streaming("/v1/responses", HELLO) as one, flow.streaming("/v1/responses", HELLO) as two:
        one.until("response.created")
        two.until("response.created")
        answer = flow.post("/v1/responses", HELLO)
        assert (answer.status, answer.error["code"]) == (503, "server_is_overloaded")
        assert answer.headers["retry-after"] == "1"
        for gate in gates:
            gate.open()
        one.until("response.completed")
        two.until("response.completed")


# ── shutdown ───────────────────────────────────────────────────────────────────────────────────────────


def test_shutdown_lets_running_streams_finish_and_turns_new_ones_away(special: Any) -> None:
    flow = special()
    gate = Gate()
    flow.script(stream([*HALF, gate, *chat_chunks(" and the rest")[1:]]))
    with flow.streaming("/v1/responses", HELLO) as events:
        seen = [events.until("response.created")]
        gate.reached.wait()
        stopper = threading.Thread(target=flow.server.stop)
        stopper.start()
        until(lambda: flow.server.gateway.draining)
        refused = flow.post("/v1/responses", HELLO)
        assert (refused.status, refused.error["code"], refused.headers["retry-after"]) == (503, "draining", "1")
        assert flow.get("/ready").status == 503
        assert flow.get("/health").status == 200
        gate.open()
        seen += list(events)
    stopper.join()
    assert finished(seen)["output_text"] == "Half of it and the rest"


@pytest.mark.parametrize("background", [False, True])
def test_after_the_grace_period_the_rest_ends_with_a_terminal_event_and_is_stored(
    tmp_path: Path, background: bool
) -> None:
    gate = Gate()
    with running_flow(tmp_path, extra="[server]\ngrace = 0.1") as flow:
        flow.script(stream([*HALF, gate]))
        with flow.streaming("/v1/responses", {**HELLO, "background": background}) as events:
            seen = [events.until("response.created")]
            gate.reached.wait()
            stopper = threading.Thread(target=flow.server.stop)
            stopper.start()
            seen += list(events)
        stopper.join()
        response = finished(seen)
        assert (response["status"], response["error"]["code"]) == ("failed", "server_is_overloaded")
        assert message_text(response) == "Half of it"
        flow.wait_sent().closed.wait()
    with running_flow(tmp_path) as flow:
        assert flow.get(f"/v1/responses/{response['id']}").json == response


def test_sigterm_ends_the_process_in_good_order(tmp_path: Path) -> None:
    gate = Gate()
    with ScriptedUpstream.running([chat("first"), stream([*HALF, gate])]) as upstream:
        toml = _toml(tmp_path, upstream.base_url, "grace = 0.2")
        with running_gateway_process(toml, tmp_path) as gateway:
            talk = Talk(gateway.url)
            first = talk.create({"model": PLAIN, "input": "hi"})
            with talk.streaming("/v1/responses", HELLO) as events:
                seen = [events.until("response.created")]
                gate.reached.wait()
                gateway.process.terminate()
                seen += list(events)
            assert gateway.stop() == 0
        cut = finished(seen)
        assert cut["status"] == "failed"
        assert "Traceback" not in gateway.log.read_text()
        with running_gateway_server(toml) as again:
            talk = Talk(again.url)
            assert talk.get(f"/v1/responses/{first['id']}").json == first
            assert talk.get(f"/v1/responses/{cut['id']}").json == cut


def test_kill_leaves_a_store_that_opens_and_says_what_was_lost(tmp_path: Path) -> None:
    gate = Gate()
    with ScriptedUpstream.running([chat("first"), stream([*HALF, gate])]) as upstream:
        toml = _toml(tmp_path, upstream.base_url) + "[background]\nlease = 1\n"
        with running_gateway_process(toml, tmp_path) as gateway:
            talk = Talk(gateway.url)
            first = talk.create({"model": PLAIN, "input": "hi"})
            body = {"model": PLAIN, "input": "hi", "background": True}
            running = talk.post("/v1/responses", body).json
            with talk.streaming(f"/v1/responses/{running['id']}?stream=true", method="GET") as events:
                events.until("response.output_text.delta")  # what nothing was told of would be made again
            gateway.kill()
        with running_gateway_server(toml) as again:
            talk = Talk(again.url)
            assert talk.get(f"/v1/responses/{first['id']}").json == first
            with talk.streaming(f"/v1/responses/{running['id']}?stream=true", method="GET") as events:
                kept = list(events)
            lost = talk.get(f"/v1/responses/{running['id']}").json
            last = kept[-1]["sequence_number"]
            for after, rest in ((last - 1, kept[-1:]), (last, [])):
                query = f"?stream=true&starting_after={after}"
                with talk.streaming(f"/v1/responses/{running['id']}{query}", method="GET") as events:
                    assert list(events) == rest
    assert kept[-1] == {"type": "response.failed", "sequence_number": last, "response": lost}
    assert [event["sequence_number"] for event in kept] == list(range(last + 1))
    assert (lost["status"], lost["error"]["code"]) == ("failed", "server_error")
    assert "stopped" in lost["error"]["message"]


# ── a store that fails ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True])
def test_a_response_that_cannot_be_stored_is_not_called_completed(special: Any, streamed: bool) -> None:
    flow = special(store="memory")

    async def full(*_: Any, **__: Any) -> bool:
        raise ConfigError("the disk is full", code="store_unavailable")

    flow.server.gateway.store.save = full
    flow.script(chat("Hello"))
    body = {"model": PLAIN, "input": "hi"}
    response = flow.stream(body)[1] if streamed else flow.create(body)
    assert (response["status"], response["error"]["code"]) == ("failed", "store_unavailable")
    assert "disk is full" in response["error"]["message"]
    assert message_text(response) == "Hello"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_a_bug_of_ours_in_mid_stream_still_ends_the_stream(special: Any, path: str) -> None:
    flow = special(store="memory")

    async def buggy() -> AsyncIterator[list[Delta]]:
        yield [Text("Half of it")]
        raise ZeroDivisionError("a bug")

    @asynccontextmanager
    async def send(*_: Any) -> AsyncIterator[AsyncIterator[list[Delta]]]:
        yield buggy()

    flow.server.gateway.directory.served["plain"].backend.send = send
    field = "input" if path == "/v1/responses" else "messages"
    body = {"model": PLAIN, field: [{"role": "user", "content": "hi"}], "stream": True}
    with flow.streaming(path, body) as events:
        *_, last = events
    told = last["response"]["error"] if path == "/v1/responses" else last["error"]
    assert told["code"] == "server_error"
    assert "log" in told["message"]
    assert "ZeroDivision" not in str(told)


def _toml(folder: Path, base_url: str, server: str = "") -> str:
    return (
        f"[server]\nport = 0\n{server}\n[models]\ndemo = false\n[providers.plain]\nuses = 'openai-compatible'\n"
        f"base_url = '{base_url}'\nretries = 0\n[store]\nurl = 'sqlite:{folder / 'flow.db'}'\n"
    )
