"""A run that is told to end, runs out of time, or loses its reader: its upstream is left at once, its end is one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conduct.stage import STOPS, Stage
from gateway.house import Asked, Upstream
from isthmus.bridge.deltas import Text
from isthmus.bridge.turn import Done
from isthmus.conduct.around import Stop
from isthmus.errors import ConfigError, UpstreamFailed
from isthmus.ports import Sent
from wire.oracle import check_stream

MEANINGS: dict[Stop, tuple[str, str | None]] = {
    "cancelled": ("cancelled", None),
    "left": ("cancelled", None),
    "shutdown": ("failed", "server_is_overloaded"),
    "timeout": ("failed", "upstream_timeout"),
    "lost": ("failed", "server_error"),
}
TOLD: tuple[Stop, ...] = ("cancelled", "shutdown", "timeout", "lost")
reasons = pytest.mark.parametrize("reason", TOLD)


def how_it_ended(response: Any) -> tuple[str, str | None]:
    return response["status"], (response["error"] or {"code": None})["code"]


@reasons
def test_who_reads_is_told_why_and_the_upstream_is_left_at_once(stage: Stage, reason: Stop) -> None:
    run = stage.run_of("one", "two")
    reading = stage.read(run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop(reason)
    assert run.stopping()
    stage.quiet()
    assert reading.exception() is None
    assert reading.cancelling() == 0, "the reader itself was not cancelled"
    response = check_stream(stage.events)
    assert how_it_ended(response) == MEANINGS[reason]
    assert response["output_text"] == "so far"
    assert stage.upstream.open == []
    assert (len(stage.upstream.asked), stage.story[-1]) == (1, "over")
    assert stage.end.outcome == MEANINGS[reason][0]


@reasons
@pytest.mark.parametrize("background", [False, True])
def test_before_the_upstream_accepted_there_is_no_fallback_either(stage: Stage, reason: Stop, background: bool) -> None:
    run = stage.run_of("one", "two", background=background)
    reading = stage.read(run)
    run.stop(reason)
    stage.quiet()
    assert (len(stage.upstream.asked), stage.end.provider) == (1, "one")
    assert stage.upstream.open == []
    if reason == "timeout" and not background:
        raised = reading.exception()
        assert isinstance(raised, UpstreamFailed)
        assert raised.code == "upstream_timeout"
        assert stage.saved == []
        return
    assert how_it_ended(check_stream(stage.events)) == MEANINGS[reason]
    assert len(stage.saved) == (reason != "lost")


@reasons
def test_who_is_stopped_before_it_began_asks_nobody(stage: Stage, reason: Stop) -> None:
    run = stage.run_of(background=True)
    run.stop(reason)
    stage.read(run)
    assert stage.upstream.asked == []
    assert how_it_ended(check_stream(stage.events)) == MEANINGS[reason]
    assert (len(stage.heard.facts), stage.end.attempts) == (1, 0), "nothing was sent"


@reasons
def test_a_slow_reader_finds_the_end_when_it_comes_back(stage: Stage, reason: Stop) -> None:
    patience = asyncio.Event()
    run = stage.run_of()
    reading = stage.read(run, slowly=patience)
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop(reason)
    stage.quiet()
    assert not reading.done()
    patience.set()
    stage.quiet()
    assert how_it_ended(check_stream(stage.events)) == MEANINGS[reason]
    assert stage.upstream.open == []


def test_what_is_not_waited_for_any_more_is_not_left_lying(stage: Stage, recwarn: pytest.WarningsRecorder) -> None:
    """Python complains about what nobody awaits: of 3.13 about any step of an iterator, of others about some."""

    class Words:
        def __aiter__(self) -> Words:
            return self

        async def __anext__(self) -> list[Text]:
            return [Text("word")]

    class Talking(Upstream):
        @asynccontextmanager
        async def send(self, plan: Any, body: Any, behalf: Any = None) -> AsyncIterator[Any]:
            yield Words()

    stage.upstream = Talking()
    patience = asyncio.Event()
    run = stage.run_of()
    stage.read(run, slowly=patience)
    run.stop("cancelled")
    patience.set()
    stage.quiet()
    gc.collect()
    assert check_stream(stage.events)["status"] == "cancelled"
    assert [str(warning.message) for warning in recwarn] == []


def test_what_was_lost_does_not_even_try_to_write(stage: Stage) -> None:
    run = stage.run_of()
    stage.read(run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop("lost")
    stage.quiet()
    assert stage.saved == []
    assert run.lost


def test_the_first_reason_counts_and_none_after_the_end(stage: Stage) -> None:
    run = stage.run_of()
    stage.read(run)
    stage.asked.accept()
    stage.quiet()
    run.stop("shutdown")
    run.stop("cancelled")
    stage.quiet()
    assert how_it_ended(run.response) == MEANINGS["shutdown"]
    other = Stage()
    run = other.run_of()
    other.read(run)
    other.asked.end("Hello")
    other.quiet()
    run.stop("cancelled")
    assert not run.stopping()
    other.close()


@pytest.mark.parametrize("reason", TOLD)
def test_what_is_being_saved_is_not_stopped_any_more(stage: Stage, reason: Stop) -> None:
    stage.saving = asyncio.Event()
    run = stage.run_of()
    reading = stage.read(run)
    stage.asked.end("Hello")
    stage.quiet()
    run.stop(reason)
    run.abandon()
    stage.quiet()
    assert not reading.done()
    stage.saving.set()
    stage.quiet()
    assert check_stream(stage.events)["status"] == "completed"
    assert not run.abandoned


def test_a_reader_that_left_is_cancelled_and_what_there_was_is_saved(stage: Stage) -> None:
    run = stage.run_of()
    reading = stage.read(run)
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop("left")
    stage.quiet()
    assert reading.cancelled()
    assert stage.story == ["begun", "saved cancelled by one", "over"]
    assert run.response is not None
    assert run.response["output_text"] == "so far"
    assert stage.end.outcome == "cancelled"


@pytest.mark.parametrize("accepted", [False, True])
def test_a_reader_that_is_cancelled_from_outside_stays_so(stage: Stage, accepted: bool) -> None:
    run = stage.run_of("one", "two")
    reading = stage.read(run)
    if accepted:
        stage.asked.say(Text("so far"))
        stage.quiet()
    reading.cancel()
    stage.quiet()
    assert reading.cancelled()
    assert stage.upstream.open == []
    assert len(stage.upstream.asked) == 1
    assert stage.story == ["begun", "saved cancelled by one", "over"]


@pytest.mark.parametrize("reason", [None, *STOPS])
def test_a_reader_that_closes_the_iterator_closes_the_upstream(stage: Stage, reason: Stop | None) -> None:
    run = stage.run_of()

    async def read_once() -> None:
        async with aclosing(run.events()) as batches:
            async for batch in batches:
                stage.events += batch
                if reason is not None:
                    run.stop(reason)
                return

    reading = stage.launch(read_once())
    stage.asked.accept()
    stage.quiet()
    assert reading.exception() is None
    assert stage.upstream.open == []
    assert len(stage.saved) == (reason != "lost")
    assert how_it_ended(run.response) == MEANINGS[reason or "left"]
    assert stage.story[-1] == "over"


# ── cut off ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_reader_that_does_not_take_the_end_is_cut_off_and_what_there_was_is_saved(stage: Stage) -> None:
    run = stage.run_of()
    reading = stage.read(run, slowly=asyncio.Event())
    stage.asked.say(Text("so far"))
    stage.quiet()
    run.stop("shutdown")
    stage.quiet()
    assert not reading.done()
    run.abandon()
    stage.quiet()
    assert reading.cancelled()
    assert run.abandoned
    assert stage.upstream.open == []
    assert how_it_ended(run.response) == MEANINGS["shutdown"]
    assert len(stage.saved) == 1


def test_who_waits_on_the_upstream_needs_no_cutting_off(stage: Stage) -> None:
    """It gets the terminal event next, by itself."""
    run = stage.run_of()
    stage.read(run)
    run.abandon()
    assert not run.abandoned
    over = stage.run_of()
    over.abandon()
    assert not over.abandoned, "nobody reads it"


# ── time ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_response_that_takes_too_long_ends_in_time(stage: Stage) -> None:
    run = stage.run_of("one", "two", total=60)
    stage.read(run)
    stage.flow(30)
    stage.asked.fail(UpstreamFailed("it is full"))
    stage.quiet()
    stage.asked.say(Text("so far"))
    stage.flow(29.5)
    assert not stage.terminal, "the time is for all attempts together, and not over"
    stage.flow(0.5)
    assert how_it_ended(check_stream(stage.events)) == MEANINGS["timeout"]
    assert stage.upstream.open == []
    assert stage.loop.next_timer() is None


def test_its_reader_has_a_moment_to_take_that(stage: Stage) -> None:
    patience = asyncio.Event()
    run = stage.run_of(total=60)
    reading = stage.read(run, slowly=patience)
    stage.asked.say(Text("so far"))
    stage.flow(60 + 29.5)
    assert not reading.done()
    patience.set()
    stage.quiet()
    assert how_it_ended(check_stream(stage.events)) == MEANINGS["timeout"]
    assert not run.abandoned


def test_a_reader_that_takes_nothing_is_cut_off_in_the_end(stage: Stage) -> None:
    run = stage.run_of(total=60)
    reading = stage.read(run, slowly=asyncio.Event())
    stage.asked.say(Text("so far"))
    stage.flow(60 + 30)
    assert reading.cancelled()
    assert run.abandoned
    assert stage.upstream.open == []
    assert how_it_ended(stage.saved[0].response) == MEANINGS["timeout"]


@pytest.mark.parametrize("ending", ["completed", "refused", "cancelled"])
def test_no_timer_outlives_its_run(stage: Stage, ending: str) -> None:
    run = stage.run_of(total=60)
    reading = stage.read(run)
    if ending == "completed":
        stage.asked.end("Hello")
    elif ending == "refused":
        stage.asked.fail(UpstreamFailed("it is full"))
    else:
        run.stop("cancelled")
    stage.quiet()
    assert reading.done()
    reading.exception()
    assert stage.loop.next_timer() is None


# ── by chance ──────────────────────────────────────────────────────────────────────────────────────────

STEPS = ("accept", "say", "end", "fail", "bug", "beat", "minute", "read", "cancel", "disk", *STOPS)


@given(
    st.lists(st.sampled_from(STEPS), min_size=1, max_size=9),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
@settings(max_examples=400, deadline=None)
def test_whatever_happens_it_ends_once(steps: list[str], background: bool, slow: bool, fallback: bool) -> None:
    stage = Stage()
    try:
        _live(stage, steps, background, slow, fallback)
    finally:
        stage.close()


def _live(stage: Stage, steps: list[str], background: bool, slow: bool, fallback: bool) -> None:
    run = stage.run_of("one", *(["two"] if fallback else []), background=background, total=90)
    patience = asyncio.Event()
    reading = stage.read(run, slowly=patience if slow else None)
    for step in steps:
        asked = stage.upstream.open[-1] if stage.upstream.open else None
        if step in STOPS:
            run.stop(step)  # type: ignore[arg-type]
        elif step == "minute":
            stage.flow(60)
        elif step == "read":
            patience.set()
        elif step == "cancel":
            reading.cancel()
        elif step == "disk":
            stage.save_as = _full_disk
        elif step == "beat" and (event := run.heartbeat()) is not None:
            stage.events.append(event)
        elif asked is not None:
            _do(asked, step)
        stage.quiet()
    patience.set()
    stage.flow(90 + 30)
    assert reading.done()
    failure = None if reading.cancelled() else reading.exception()
    assert stage.upstream.open == []
    assert (stage.story.count("begun"), stage.story.count("over"), stage.story[-1]) == (1, 1, "over")
    assert stage.loop.next_timer() is None
    assert len(stage.saved) <= 1
    assert sum(isinstance(fact, Sent) for fact in stage.heard.facts) == len(stage.upstream.asked) == stage.end.attempts
    if failure is not None:
        assert (failure, stage.events, stage.saved) == (run.failure, [], []), "refused before anything was told"
        assert not background
        return
    assert stage.end.outcome == run.response["status"]  # type: ignore[index]
    assert [event["sequence_number"] for event in stage.events] == list(range(len(stage.events)))
    if not reading.cancelled():
        assert [event["response"] for event in stage.terminal] == [run.response]
    if stage.saved and stage.save_as is not _full_disk:
        assert stage.saved[0].response == run.response


def _do(asked: Asked, step: str) -> None:
    match step:
        case "accept":
            asked.accept()
        case "say":
            asked.say(Text("word"))
        case "end":
            asked.end("last")
        case "fail" | "bug":
            asked.fail(UpstreamFailed("it broke off") if step == "fail" else KeyError("a bug"))


def _full_disk(done: Done) -> Done:
    raise ConfigError("the disk is full", code="store_unavailable")
