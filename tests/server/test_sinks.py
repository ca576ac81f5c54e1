"""How a run is told over HTTP, message for message as the server gets them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from conduct.stage import Stage
from isthmus.bridge.deltas import Text
from isthmus.bridge.sse import DONE, PING
from isthmus.conduct.aside import Aside
from isthmus.conduct.run import Run
from isthmus.config.schema import Server
from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.server.accompany import accompany
from isthmus.server.http import ClientLeft
from isthmus.server.responses import encode_events
from isthmus.server.sinks import ChatSink, JsonSink, SseSink, has_left, send_events
from wire.oracle import check_sse

STREAM = {"content-type": "text/event-stream", "cache-control": "no-cache", "x-accel-buffering": "no"}


class Http:
    """One exchange as an ASGI server sees it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.incoming: asyncio.Queue[Any] = asyncio.Queue()

    async def send(self, message: Any) -> None:
        self.sent.append(message)

    async def receive(self) -> Any:
        return await self.incoming.get()

    def leave(self) -> None:
        self.incoming.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int:
        start, *rest = self.sent
        assert start["type"] == "http.response.start"
        assert {message["type"] for message in rest} <= {"http.response.body"}
        return int(start["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.sent[1:]]

    @property
    def whole(self) -> bool:
        """Whether the server was told that nothing follows, and only at the end."""
        *middle, last = [message.get("more_body", False) for message in self.sent[1:]]
        return all(middle) and not last


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


@pytest.fixture
def http() -> Http:
    return Http()


def finished(stage: Stage, ending: str = "completed", **body: Any) -> Run:
    run = stage.run_of(**body)
    stage.read(run)
    stage.asked.say(Text("Hello"))
    stage.quiet()
    if ending == "completed":
        stage.asked.end()
    elif ending == "failed":
        stage.asked.fail(UpstreamFailed("it broke off"))
    else:
        run.stop("cancelled")
    stage.quiet()
    return run


# ── whole ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_answer_is_one_json_object(stage: Stage, http: Http) -> None:
    run = stage.run_of(service_tier="flex")
    task = stage.launch(accompany(run, JsonSink(http.receive, http.send, lambda response: response, Aside()), Server()))
    stage.asked.say(Text("Hel"))
    stage.quiet()
    assert http.sent == []
    stage.asked.end("lo")
    stage.quiet()
    task.result()
    assert http.status == 200
    assert (http.headers["content-type"], http.headers["isthmus-plan"]) == ("application/json", "ignored=1")
    (body,) = http.bodies
    assert http.headers["content-length"] == str(len(body))
    assert json.loads(body) == run.response


def test_it_is_rendered_before_anything_is_sent(stage: Stage, http: Http) -> None:
    """What cannot be rendered still has its own status."""

    def render(response: Any) -> Any:
        raise UpstreamFailed("it failed")

    sink = JsonSink(http.receive, http.send, render, Aside())
    with pytest.raises(UpstreamFailed):
        stage.run(sink.end(finished(stage)))
    assert http.sent == []


def test_whoever_waits_for_the_whole_gets_nothing_in_between(stage: Stage, http: Http) -> None:
    sink = JsonSink(http.receive, http.send, lambda response: response, Aside())
    assert sink.whole
    run = finished(stage)
    assert sink.write(run, stage.events) is None
    stage.run(sink.alive(stage.events[0]))
    assert http.sent == []


# ── streamed ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_stream_begins_with_its_first_events(stage: Stage, http: Http) -> None:
    run = stage.run_of(service_tier="flex")
    task = stage.launch(accompany(run, SseSink(http.receive, http.send, encode_events, Aside()), Server()))
    assert http.sent == [], "a refusal before them has its own status"
    stage.asked.accept()
    stage.quiet()
    assert http.status == 200
    assert STREAM.items() <= http.headers.items()
    assert http.headers["isthmus-plan"] == "ignored=1"
    stage.asked.end("Hello")
    stage.quiet()
    task.result()
    assert http.whole
    assert http.bodies[-1] == DONE
    assert check_sse(b"".join(http.bodies)) == run.response


def test_its_headers_are_those_of_the_attempt_that_answers(stage: Stage, http: Http) -> None:
    other = stage.attempt("two", {"stream": True})
    run = stage.run_of(others=[other], service_tier="flex")
    stage.launch(accompany(run, SseSink(http.receive, http.send, encode_events, Aside()), Server()))
    stage.asked.fail(UpstreamFailed("it is full"))
    stage.quiet()
    stage.asked.accept()
    stage.quiet()
    assert http.headers["isthmus-plan"] == "ok"


def test_every_batch_is_one_message(stage: Stage, http: Http) -> None:
    run = finished(stage)
    sink = SseSink(http.receive, http.send, encode_events, Aside())
    stage.run(sink.write(run, stage.events[:2]))
    stage.run(sink.write(run, stage.events[2:3]))
    assert [body.count(b"event: ") for body in http.bodies] == [2, 1]
    assert not any(message["more_body"] is False for message in http.sent[1:])
    assert len([message for message in http.sent if message["type"] == "http.response.start"]) == 1


@pytest.mark.parametrize(("encoded", "told"), [(b"event: x\n\n", b"event: x\n\n"), (b"", PING)])
def test_a_sign_of_life_is_the_event_or_a_comment_where_the_dialect_has_none(
    stage: Stage, http: Http, encoded: bytes, told: bytes
) -> None:
    sink = SseSink(http.receive, http.send, lambda events, size: encoded, Aside())
    run = finished(stage)
    stage.run(sink.write(run, stage.events[:1]))
    stage.run(sink.alive(stage.events[1]))
    stage.run(sink.alive(None))
    assert http.bodies[1:] == [told, PING]


@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled"])
@pytest.mark.parametrize("kind", [SseSink, ChatSink])
def test_it_ends_with_done_unless_it_failed_in_a_dialect_where_that_says_success(
    stage: Stage, http: Http, ending: str, kind: type[SseSink]
) -> None:
    sink = kind(http.receive, http.send, encode_events, Aside())
    run = finished(stage, ending)
    stage.run(sink.write(run, stage.events))
    stage.run(sink.end(run))
    assert http.whole
    assert http.bodies[-1] == (DONE if ending == "completed" or kind is SseSink else b"")


async def test_large_events_go_out_one_by_one_in_pieces_and_are_written_beside_the_loop(http: Http) -> None:
    aside, threads = Aside(), set[int]()

    def encode(events: list[Any], size: int) -> bytes:
        threads.add(threading.get_ident())
        assert len(events) == 1
        return encode_events(events, size)

    def event(number: int) -> Any:
        return {"type": "response.output_text.done", "sequence_number": number, "text": f"so much\n{number}" * 100_000}

    events = [event(number) for number in range(3)]
    await SseSink(http.receive, http.send, encode, aside)._write_large(events, 3_000_000)
    aside.close()
    bodies = [message["body"] for message in http.sent]
    assert b"".join(bodies) == encode_events(events)
    assert max(map(len, bodies)) == 262_144
    assert threads.isdisjoint({threading.get_ident()})


def test_a_client_has_left_when_the_server_says_so(stage: Stage, http: Http) -> None:
    sink = SseSink(http.receive, http.send, encode_events, Aside())
    waiting = [stage.launch(_wait(each)) for each in (sink.left(), has_left(http.receive))]
    for _ in waiting:
        http.incoming.put_nowait({"type": "http.request", "body": b"more", "more_body": False})
    stage.quiet()
    assert not any(task.done() for task in waiting)
    for _ in waiting:
        http.leave()
    stage.quiet()
    assert all(task.done() for task in waiting)


async def _wait(left: Any) -> None:
    await left


# ── told again ─────────────────────────────────────────────────────────────────────────────────────────


class Told:
    """Batches that come when the test says so."""

    def __init__(self) -> None:
        self.coming: asyncio.Queue[Any] = asyncio.Queue()
        self.closed = False

    async def batches(self) -> AsyncIterator[list[bytes]]:
        try:
            while (batch := await self.coming.get()) is not None:
                if isinstance(batch, Exception):
                    raise batch
                yield batch
        finally:
            self.closed = True


def follow(stage: Stage, http: Http, told: Told, ping: float = 0.0) -> asyncio.Task[None]:
    return stage.launch(send_events(http.receive, http.send, told.batches(), {"isthmus-plan": "ok"}, ping=ping))


def test_stored_events_are_sent_as_they_come(stage: Stage, http: Http) -> None:
    told = Told()
    task = follow(stage, http, told)
    assert http.status == 200
    assert {**STREAM, "isthmus-plan": "ok"}.items() <= http.headers.items()
    told.coming.put_nowait([b"a", b"b"])
    stage.quiet()
    assert http.bodies == [b"ab"]
    told.coming.put_nowait([b"c"])
    told.coming.put_nowait(None)
    stage.quiet()
    task.result()
    assert http.bodies == [b"ab", b"c", DONE]
    assert http.whole
    assert not asyncio.all_tasks(stage.loop)


@pytest.mark.parametrize(("ping", "comments"), [(10, 3), (0, 0)])
def test_while_nothing_comes_comments_do(stage: Stage, http: Http, ping: float, comments: int) -> None:
    told = Told()
    follow(stage, http, told, ping)
    stage.flow(35)
    assert http.bodies == [PING] * comments
    told.coming.put_nowait([b"a"])
    stage.flow(5)
    assert http.bodies[comments:] == [b"a"], "a word begins the silence anew"


def test_a_follower_that_leaves_stops_following(stage: Stage, http: Http) -> None:
    told = Told()
    task = follow(stage, http, told, 10)
    http.leave()
    stage.quiet()
    assert isinstance(task.exception(), ClientLeft)
    assert told.closed
    assert not asyncio.all_tasks(stage.loop)
    assert http.bodies == []


def test_a_store_that_fails_on_the_way_cuts_the_stream_without_an_end(stage: Stage, http: Http) -> None:
    told = Told()
    task = follow(stage, http, told)
    told.coming.put_nowait([b"a"])
    told.coming.put_nowait(ConfigError("the disk is gone", code="store_unavailable"))
    stage.quiet()
    assert isinstance(task.exception(), ConfigError)
    assert http.bodies == [b"a"], "an end would say that this was all"
    assert not asyncio.all_tasks(stage.loop)
