"""A run and whoever reads it: everything in order, signs of life while it is silent, and no upstream for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from conduct.stage import Stage
from isthmus.bridge.deltas import Text
from isthmus.conduct.run import Run
from isthmus.config.schema import Server
from isthmus.errors import UpstreamFailed
from isthmus.protocol.events import Event
from isthmus.server.accompany import accompany
from isthmus.server.http import ClientLeft
from isthmus.server.leaving import Leaving
from wire.oracle import check_stream

SILENT = Server(heartbeat=0, ping=0)


class Client:
    """A sink that notes what it gets, and complains when it is spoken to from two sides at once."""

    beats = True
    whole = False
    leaving: Leaving | None = None

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.said: list[str] = []
        self.gone = asyncio.Event()
        self.reads = asyncio.Event()
        self.reads.set()
        self._busy = False

    async def write(self, run: Run, events: list[Event]) -> None:
        await self._take("write", events)

    async def alive(self, event: Event | None) -> None:
        await self._take("comment" if event is None else "beat", [] if event is None else [event])

    async def end(self, run: Run) -> None:
        await self._take("end", [])

    async def left(self) -> None:
        await self.gone.wait()

    async def _take(self, what: str, events: list[Event]) -> None:
        assert not self._busy, "one thing at a time"
        self._busy = True
        await self.reads.wait()
        self._busy = False
        self.said.append(what)
        self.events += events


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


@pytest.fixture
def client() -> Client:
    return Client()


def begin(stage: Stage, client: Client, run: Run, pulse: Server = SILENT) -> asyncio.Task[None]:
    return stage.launch(accompany(run, client, pulse))


def nothing_left(stage: Stage) -> bool:
    return stage.upstream.open == [] and not asyncio.all_tasks(stage.loop) and stage.loop.next_timer() is None


def test_everything_is_handed_over_in_order_and_then_the_end(stage: Stage, client: Client) -> None:
    task = begin(stage, client, stage.run_of())
    assert client.said == []
    stage.asked.say(Text("Hel"))
    stage.quiet()
    assert client.said == ["write", "write"]
    stage.asked.end("lo")
    stage.quiet()
    task.result()
    assert check_stream(client.events)["output_text"] == "Hello"
    assert client.said[-2:] == ["write", "end"]
    assert client.said.count("end") == 1
    assert nothing_left(stage)


def test_what_fails_before_anything_was_told_is_raised(stage: Stage, client: Client) -> None:
    task = begin(stage, client, stage.run_of(), Server())
    failure = UpstreamFailed("it is full")
    stage.asked.fail(failure)
    stage.quiet()
    assert task.exception() is failure
    assert client.said == []
    assert nothing_left(stage)


def test_a_client_that_cannot_be_written_to_ends_the_run(stage: Stage, client: Client) -> None:
    async def write(run: Run, events: list[Event]) -> None:
        raise OSError("broken pipe")

    client.write = write  # type: ignore[method-assign]
    run = stage.run_of()
    task = begin(stage, client, run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    assert isinstance(task.exception(), OSError)
    assert run.response is not None
    assert run.response["status"] == "cancelled"
    assert nothing_left(stage)


def test_who_takes_the_answer_whole_gets_the_end_alone(stage: Stage, client: Client) -> None:
    client.whole = True
    run = stage.run_of()
    task = begin(stage, client, run, Server(heartbeat=5, ping=5))
    stage.asked.say(Text("Hel"))
    stage.flow(30)
    stage.asked.end("lo")
    stage.quiet()
    task.result()
    assert client.said == ["end"]
    assert run.response is not None
    assert run.response["output_text"] == "Hello"
    assert nothing_left(stage)


# ── the client leaves ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_a_client_that_leaves_stops_the_upstream_at_once(
    stage: Stage, client: Client, accepted: bool, whole: bool
) -> None:
    client.whole = whole
    run = stage.run_of()
    task = begin(stage, client, run, Server())
    if accepted:
        stage.asked.say(Text("so far"))
        stage.quiet()
    client.gone.set()
    stage.quiet()
    assert isinstance(task.exception(), ClientLeft)
    assert "end" not in client.said
    assert run.response is not None
    assert (run.response["status"], run.response["output_text"]) == ("cancelled", "so far" if accepted else "")
    assert nothing_left(stage)


def test_a_client_that_leaves_while_it_is_slow_is_told_nothing_more(stage: Stage, client: Client) -> None:
    task = begin(stage, client, stage.run_of())
    client.reads.clear()
    stage.asked.say(Text("so far"))
    stage.quiet()
    client.gone.set()
    stage.quiet()
    client.reads.set()
    stage.quiet()
    assert isinstance(task.exception(), ClientLeft)
    assert client.said == ["write"]
    assert nothing_left(stage)


@pytest.mark.parametrize("whole", [False, True])
def test_a_client_that_leaves_with_the_last_word_had_no_end(stage: Stage, client: Client, whole: bool) -> None:
    client.whole = whole
    task = begin(stage, client, stage.run_of())
    stage.asked.accept()
    stage.quiet()
    stage.saving = asyncio.Event()
    stage.asked.end("Hello")
    stage.quiet()
    client.gone.set()
    stage.quiet()
    stage.saving.set()
    stage.quiet()
    assert isinstance(task.exception(), ClientLeft)
    assert "end" not in client.said
    assert stage.saved[0].response["status"] == "completed", "what was made is kept as it is"


def test_a_client_that_does_not_read_is_as_good_as_gone(stage: Stage, client: Client) -> None:
    run = stage.run_of()
    task = begin(stage, client, run)
    client.reads.clear()
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop("shutdown")
    run.abandon()
    stage.quiet()
    assert isinstance(task.exception(), ClientLeft)
    assert nothing_left(stage)


def test_who_is_cancelled_from_outside_stays_so(stage: Stage, client: Client) -> None:
    task = begin(stage, client, stage.run_of())
    stage.asked.say(Text("so far"))
    stage.quiet()
    task.cancel()
    stage.quiet()
    assert task.cancelled()
    assert nothing_left(stage)


@pytest.mark.parametrize("reason", ["cancelled", "shutdown", "timeout"])
def test_who_is_there_is_told_why_it_was_stopped(stage: Stage, client: Client, reason: Any) -> None:
    run = stage.run_of()
    task = begin(stage, client, run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop(reason)
    stage.quiet()
    task.result()
    assert check_stream(client.events) == run.response
    assert client.said[-1] == "end"


# ── signs of life ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pulse", "said"),
    [
        (Server(heartbeat=10, ping=0), ["beat"] * 3),
        (Server(heartbeat=0, ping=10), ["comment"] * 3),
        (Server(heartbeat=10, ping=10), ["beat"] * 3),
        (Server(heartbeat=10, ping=5), ["comment"] * 6),
        (Server(heartbeat=0, ping=0), []),
    ],
)
def test_silence_is_filled(stage: Stage, client: Client, pulse: Server, said: list[str]) -> None:
    begin(stage, client, stage.run_of(), pulse)
    stage.asked.accept()
    stage.quiet()
    client.said.clear()
    stage.flow(30.5)
    assert client.said == said
    stage.asked.end("Hello")
    stage.quiet()
    assert [event["sequence_number"] for event in client.events] == list(range(len(client.events)))
    assert nothing_left(stage)


def test_nothing_is_said_before_the_upstream_has_accepted(stage: Stage, client: Client) -> None:
    """A refusal still needs the status."""
    begin(stage, client, stage.run_of(), Server(heartbeat=5, ping=5))
    stage.flow(60)
    assert client.said == []


def test_every_word_begins_the_silence_anew(stage: Stage, client: Client) -> None:
    begin(stage, client, stage.run_of(), Server(heartbeat=10, ping=10))
    stage.asked.accept()
    for _ in range(5):
        stage.asked.say(Text("word "))
        stage.flow(6)
    assert "beat" not in client.said
    stage.flow(10)
    assert "beat" in client.said


def test_a_client_that_is_slow_itself_needs_no_sign(stage: Stage, client: Client) -> None:
    begin(stage, client, stage.run_of(), Server(heartbeat=5, ping=5))
    stage.asked.accept()
    stage.quiet()
    client.reads.clear()
    stage.asked.say(Text("word"))
    stage.flow(60)
    client.reads.set()
    stage.quiet()
    assert client.said == ["write", "write"]


def test_words_wait_for_a_sign_of_life_that_is_under_way(stage: Stage, client: Client) -> None:
    task = begin(stage, client, stage.run_of(), Server(heartbeat=5, ping=0))
    stage.asked.accept()
    stage.quiet()
    client.reads.clear()
    stage.flow(5)
    stage.asked.end("Hello")
    stage.quiet()
    client.reads.set()
    stage.quiet()
    task.result()
    assert client.said[:3] == ["write", "beat", "write"]
    assert [event["sequence_number"] for event in client.events] == list(range(len(client.events)))


def test_an_end_that_comes_during_a_sign_of_life_does_not_swallow_it(stage: Stage, client: Client) -> None:
    """It has a number: who counts would miss it."""
    task = begin(stage, client, stage.run_of(), Server(heartbeat=5, ping=0))
    stage.asked.accept()
    stage.quiet()
    client.reads.clear()
    stage.flow(5)
    stage.asked.fail(UpstreamFailed("it broke off"))
    stage.quiet()
    client.reads.set()
    stage.quiet()
    task.result()
    assert [event["sequence_number"] for event in client.events] == list(range(len(client.events)))


@pytest.mark.parametrize("what", ["left", "alive"])
def test_a_client_that_breaks_while_nothing_is_written_ends_the_run_too(
    stage: Stage, client: Client, what: str
) -> None:
    """Else nobody would notice any more that it leaves."""

    async def fail(*given: Any) -> None:
        await broken.wait()
        raise OSError("broken pipe")

    broken = asyncio.Event()
    setattr(client, what, fail)
    task = begin(stage, client, stage.run_of(), Server(heartbeat=5, ping=0))
    stage.asked.accept()
    stage.flow(6)
    assert not task.done()
    broken.set()
    stage.quiet()
    assert isinstance(task.exception(), OSError)
    assert nothing_left(stage)
