"""Streams that never hang: early events, signs of life, and exactly one end, whatever the upstream does."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from flowing import DEEPSEEK, PLAIN, Flow
from isthmus.testing import (
    CUT,
    DONE,
    HANG,
    PATIENCE,
    RESET,
    Gate,
    Step,
    chat,
    chat_chunks,
    chat_error,
    reply,
    silence,
    stream,
)
from own_time import turns
from talking import TERMINAL, finished, message_text

Json = dict[str, Any]
T = TypeVar("T")
HELLO = {"model": PLAIN, "input": "hi", "stream": True}
HALF = chat_chunks("Half of it", usage=None, pieces=2)[:3]
"""The role and all the words, but no finish reason."""


def test_created_reaches_the_client_before_the_first_token(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Hello")]))
    with flow.streaming("/v1/responses", HELLO) as events:
        first, second = events.next(), events.next()
        assert first is not None
        assert second is not None
        assert (first["type"], second["type"]) == ("response.created", "response.in_progress")
        assert not gate.opened.is_set()
        gate.open()
        rest = list(events)
    assert finished([first, second, *rest])["output_text"] == "Hello"


def test_nothing_is_sent_before_the_upstream_has_accepted(flow: Flow) -> None:
    """So that a refusal still has its status, however late it comes."""
    gate = Gate()
    flow.script(reply({"error": {"message": "slow down"}}, status=429, after=gate))
    opener = threading.Thread(target=lambda: (gate.reached.wait(), gate.open()))
    opener.start()
    assert flow.post("/v1/responses", HELLO).status == 429
    opener.join()


DELTAS = {
    "response.output_text.delta": chat_chunks("onetwo", pieces=2),
    "response.reasoning_text.delta": chat_chunks("x", reasoning="onetwo", pieces=2),
    "response.function_call_arguments.delta": chat_chunks(calls=[("call_1", "look", "onetwo")], pieces=2),
}


@pytest.mark.parametrize(("kind", "chunks"), DELTAS.items(), ids=DELTAS.keys())
def test_each_delta_is_passed_on_when_it_comes(flow: Flow, kind: str, chunks: list[Json]) -> None:
    at = next(number for number, chunk in enumerate(chunks) if '"one' in json.dumps(chunk)) + 1
    gate = Gate()
    flow.script(stream([*chunks[:at], gate, *chunks[at:]]))
    with flow.streaming("/v1/responses", HELLO) as events:
        assert events.until(kind)["delta"] == "one"
        assert not gate.opened.is_set()
        gate.open()
        assert events.until(kind)["delta"] == "two"
        events.until("response.completed")


# ── signs of life ──────────────────────────────────────────────────────────────────────────────────────


def test_silence_is_filled_with_repeated_in_progress_events(special: Any) -> None:
    flow = special(store="memory", extra="[server]\nheartbeat = 0.05\nping = 0")
    gate = Gate()
    flow.script(stream([*HALF[:2], gate, *chat_chunks("Hello")[1:]]))
    with flow.streaming("/v1/responses", HELLO) as events:
        seen = [_next(events) for _ in range(4)]
        while sum(event["type"] == "response.in_progress" for event in seen) < 4:
            seen.append(_next(events))
        gate.open()
        seen += list(events)
        assert events.comments == 0
    assert [event["sequence_number"] for event in seen] == list(range(len(seen)))
    beats = [event for event in seen if event["type"] == "response.in_progress"]
    assert len(beats) >= 4
    assert all(event["response"]["status"] == "in_progress" for event in beats)
    assert finished(_without_beats(seen))["status"] == "completed"


def test_silence_can_be_filled_with_comments_instead(special: Any) -> None:
    flow = special(store="memory", extra="[server]\nheartbeat = 0\nping = 0.05")
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Hello")]))
    with flow.streaming("/v1/responses", HELLO) as events:
        first, second = _next(events), _next(events)
        events.comment()
        events.comment()
        gate.open()
        rest = list(events)
    assert finished([first, second, *rest])["status"] == "completed"


def test_a_chat_stream_is_kept_alive_with_comments(special: Any) -> None:
    flow = special(store="memory", extra="[server]\nheartbeat = 0.05\nping = 0.05")
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Hello")]))
    body = {"model": PLAIN, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    with flow.streaming("/v1/chat/completions", body) as chunks:
        _next(chunks)
        chunks.comment()
        chunks.comment()
        gate.open()
        words = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks if chunk["choices"])
    assert words == "Hello"


def test_both_can_be_switched_off(special: Any) -> None:
    flow = special(store="memory", extra="[server]\nheartbeat = 0\nping = 0")
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Hello")]))
    with flow.streaming("/v1/responses", HELLO) as events:
        seen = [_next(events), _next(events)]
        gate.reached.wait()
        flow.server.skip(250)  # nearly as long as an upstream may be silent
        gate.open()
        seen += list(events)
        assert events.comments == 0
    assert finished(seen)["status"] == "completed"


# ── one end, always ────────────────────────────────────────────────────────────────────────────────────


def _last(reason: str | None) -> Json:
    return {**HALF[0], "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


BROKEN: dict[str, tuple[Step, str]] = {
    "end without a finish reason": (stream(HALF, done=False), "finish reason"),
    "done without a finish reason": (stream(HALF), "finish reason"),
    "cut": (stream([*HALF, CUT], done=False), "broke off"),
    "reset": (stream([*HALF, RESET], done=False), "broke off"),
    "cut inside a chunk": (stream([*HALF, b'data: {"choices": [{"ind', CUT], done=False), "broke off"),
    "end inside a chunk": (
        stream([*HALF, b'data: {"choices": [{"ind'], done=False, framing="close"),
        "not JSON",
    ),
    "malformed JSON": (stream([*HALF, b"data: {nonsense\n\n"]), "not JSON"),
    "absurd nesting": (stream([*HALF, b"data: " + b"[" * 100_000 + b"\n\n"]), "not JSON"),
    "malformed UTF-8": (stream([*HALF, b'data: {"a": "\xff\xfe"}\n\n']), "not JSON"),
    "a chunk that is a list": (stream([*HALF, b"data: []\n\n"]), "not an object"),
    "an error chunk": (stream([*HALF, chat_error("out of memory")]), "out of memory"),
    "an error as text": (stream([*HALF, b'data: {"error": "out of memory"}\n\n']), "out of memory"),
    "an error beside choices": (
        stream([*HALF, {**_last(None), "error": {"message": "out of memory"}}]),
        "out of memory",
    ),
    "nothing at all": (stream([], done=False), "finish reason"),
    "only comments": (stream([b": hello\n\n", DONE], done=False), "finish reason"),
    "an unknown finish reason": (stream([*HALF, _last("because")]), "finish reason"),
    "a network error": (chat("Half of it", finish="network_error"), "network error"),
}


@pytest.mark.parametrize("case", BROKEN, ids=list(BROKEN))
def test_a_broken_upstream_stream_ends_in_one_failed_event(flow: Flow, case: str) -> None:
    step, words = BROKEN[case]
    flow.script(step)
    events, response = flow.stream(HELLO)
    assert [event["type"] for event in events if event["type"] in TERMINAL] == ["response.failed"]
    assert response["status"] == "failed"
    assert words in response["error"]["message"]
    assert response["error"]["code"]
    if "nothing" not in case and "comments" not in case:
        assert message_text(response) == "Half of it"
    assert flow.get(f"/v1/responses/{response['id']}").json == response


@pytest.mark.parametrize("case", BROKEN, ids=list(BROKEN))
def test_a_broken_upstream_stream_ends_a_chat_stream_with_an_error(flow: Flow, case: str) -> None:
    step, words = BROKEN[case]
    flow.script(step)
    chunks = flow.chat_stream({"model": PLAIN, "messages": [{"role": "user", "content": "hi"}]})
    assert words in chunks[-1]["error"]["message"]
    assert set(chunks[-1]["error"]) == {"message", "type", "param", "code"}
    assert not any("error" in chunk for chunk in chunks[:-1])


def test_a_rate_limit_inside_a_stream_keeps_its_code(flow: Flow) -> None:
    flow.script(stream([*HALF, chat_error("Rate limit reached, try again in 3s", code="rate_limit_exceeded")]))
    _, response = flow.stream(HELLO)
    assert response["error"]["code"] == "rate_limit_exceeded"
    assert "3s" in response["error"]["message"]


@pytest.mark.parametrize("hang", ["before the first chunk", "in the middle"])
def test_an_upstream_that_falls_silent_is_given_up(special: Any, hang: str) -> None:
    flow = special(store="memory", provider="timeouts = { idle = 0.1 }")
    flow.script(stream([*([] if hang.startswith("before") else HALF), HANG], done=False))
    _, response = flow.stream(HELLO)
    assert (response["status"], response["error"]["code"]) == ("failed", "upstream_timeout")
    assert "silent" in response["error"]["message"]
    flow.wait_sent().closed.wait()


def test_a_response_that_takes_too_long_altogether_is_given_up(special: Any) -> None:
    flow = special(store="memory", provider="timeouts = { total = 200 }")
    flow.script(stream([*HALF, HANG], done=False), stream([*HALF, HANG], done=False))
    body = {"model": PLAIN, "input": "hi"}
    for number, ask in enumerate((lambda: flow.stream(body)[1], lambda: flow.create(body)), start=1):
        with _meanwhile(ask) as asked:
            flow.wait_sent(number)
            _until_accepted(flow)
            flow.server.skip(150)
            assert not asked.done()
            flow.server.skip(50)
            response = asked.result(PATIENCE)
        assert (response["status"], response["error"]["code"]) == ("failed", "upstream_timeout")
    for request in flow.upstream.requests:
        request.closed.wait()


@pytest.mark.parametrize("streamed", [False, True])
def test_too_long_before_the_upstream_answered_is_a_504(special: Any, streamed: bool) -> None:
    flow = special(store="memory", provider="timeouts = { total = 200 }")
    flow.script(silence())
    with _meanwhile(lambda: flow.post("/v1/responses", {**HELLO, "stream": streamed})) as asked:
        request = flow.wait_sent()
        flow.server.skip(150)
        assert not asked.done()
        flow.server.skip(50)
        answer = asked.result(PATIENCE)
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    request.closed.wait()


def test_the_body_ends_right_behind_the_terminal_event_although_the_upstream_lingers(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*chat_chunks("Hello"), DONE, gate], done=False))
    with flow.streaming("/v1/responses", HELLO) as events:
        assert finished(list(events))["status"] == "completed"
    assert not gate.opened.is_set()


def test_usage_in_a_trailing_chunk_is_waited_for(flow: Flow) -> None:
    gate = Gate()
    *chunks, usage = chat_chunks("Hello", usage=(3, 4))
    flow.script(stream([*chunks, gate, usage]))
    with flow.streaming("/v1/responses", HELLO) as events:
        seen = [_next(events) for _ in range(3)]
        gate.reached.wait()
        gate.open()
        response = finished([*seen, *events])
    assert response["usage"]["total_tokens"] == 7


def test_no_usage_at_all_is_null_and_no_failure(flow: Flow) -> None:
    flow.script(chat("Hello", usage=None), chat("Hello", usage=None))
    whole, _ = flow.both({"model": PLAIN, "input": "hi"})
    assert whole["status"] == "completed"
    usage = whole["usage"]
    assert usage is None or usage["estimated"]


def test_null_token_details_become_numbers(flow: Flow) -> None:
    usage = {
        "prompt_tokens": 5,
        "completion_tokens": 2,
        "total_tokens": 7,
        "prompt_tokens_details": None,
        "completion_tokens_details": {"reasoning_tokens": None},
    }
    flow.script(chat("ok", usage=usage), chat("ok", usage=usage))
    whole, _ = flow.both({"model": PLAIN, "input": "hi"})
    assert whole["usage"]["input_tokens_details"]["cached_tokens"] == 0
    assert whole["usage"]["output_tokens_details"]["reasoning_tokens"] == 0


# ── the client leaves ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
def test_a_client_that_leaves_a_stream_stops_the_upstream_at_once(flow: Flow, path: str) -> None:
    gate = Gate()
    flow.script(stream([*HALF, gate]))
    field = "input" if path == "/v1/responses" else "messages"
    body = {"model": PLAIN, field: [{"role": "user", "content": "hi"}], "stream": True}
    with flow.streaming(path, body) as events:
        _next(events)
        gate.reached.wait()
        with flow.server.standing_still():
            events.close()
            flow.wait_sent().closed.wait()
    assert not gate.opened.is_set()


def test_a_client_that_leaves_while_it_waits_for_a_whole_answer_stops_the_upstream(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([gate, *chat_chunks("Hello")]))
    connection = http.client.HTTPConnection(flow.server.url.removeprefix("http://"))
    connection.request("POST", "/v1/responses", b'{"model": "plain/x", "input": "hi"}')
    gate.reached.wait()
    with flow.server.standing_still():
        connection.close()
        flow.wait_sent().closed.wait()


def test_what_a_client_left_is_stored_as_cancelled_with_what_it_had(flow: Flow) -> None:
    gate = Gate()
    flow.script(stream([*HALF, gate]))
    with flow.streaming("/v1/responses", HELLO) as events:
        id = events.until("response.created")["response"]["id"]
        events.until("response.output_text.delta")
        gate.reached.wait()
    flow.wait_sent().closed.wait()
    flow.check()
    stored = flow.get(f"/v1/responses/{id}").json
    assert stored["status"] == "cancelled"
    assert message_text(stored) == "Half of it"


def test_a_client_that_leaves_before_the_upstream_answers_stops_it_too(flow: Flow) -> None:
    flow.script(silence())
    connection = http.client.HTTPConnection(flow.server.url.removeprefix("http://"))
    connection.request("POST", "/v1/responses", b'{"model": "plain/x", "input": "hi", "stream": true}')
    request = flow.wait_sent()
    with flow.server.standing_still():
        connection.close()
        request.closed.wait()


def test_reasoning_and_text_close_each_other_in_order(flow: Flow) -> None:
    flow.script(chat("Answer", reasoning="Thought"))
    events, _ = flow.stream({"model": DEEPSEEK, "input": "hi", "reasoning": {"effort": "high"}})
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds.index("output_item.done") < kinds.index("content_part.added", kinds.index("output_item.done"))
    assert [event["item"]["type"] for event in events if event["type"] == "response.output_item.done"] == [
        "reasoning",
        "message",
    ]


def _next(events: Any) -> Json:
    event = events.next()
    assert event is not None
    return dict(event)


@contextmanager
def _meanwhile(ask: Callable[[], T]) -> Iterator[Future[T]]:
    """A request that is answered while the test looks on."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(ask)


def _until_accepted(flow: Flow) -> None:
    """Until the upstream's answer has begun: a client that waits for a whole one sees nothing of that."""

    async def look() -> None:
        runs = flow.server.gateway.runs._runs
        while not any(run._turn.started and not run._turn.ended for run in runs.values()):
            await turns(1)

    flow.server.do(look())


def _without_beats(events: list[Json]) -> list[Json]:
    """The stream as it would be without signs of life."""
    kept = events[:2] + [event for event in events[2:] if event["type"] != "response.in_progress"]
    return [{**event, "sequence_number": number} for number, event in enumerate(kept)]
