"""A stored response told again: the same events with the same numbers, once each, and exactly one end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from gateway.world import World
from isthmus.bridge.deltas import Finished, Text
from isthmus.errors import RequestRefused
from isthmus.gateway.outline import Outline
from isthmus.gateway.resume import follow_run, is_background, read_events
from isthmus.ports import EventBatch, StoredResponse
from isthmus.testing.fold import plan_for, stream
from wire.oracle import check_stream

ID = "resp_0000000000000000"
TOLD, DONE = stream(
    [[Text("one ")], [Text("two ")], [Text("three")], [Finished("stop")]], plan=plan_for({"stream": True})
)
LAST = len(TOLD) - 1


def encoded(events: list[Any]) -> tuple[bytes, ...]:
    return tuple(msgspec.json.encode(event) for event in events)


def record(status: str = "completed", *, background: bool = False, memo: bytes = b"", **fields: Any) -> StoredResponse:
    ended = status not in ("queued", "in_progress")
    rest = {} if ended else {"output": [], "usage": None, "completed_at": None}
    response = {**DONE, "status": status, "background": background, **rest, **fields}
    return StoredResponse(ID, msgspec.json.encode(response), status=status, owner="ann", memo=memo)


def keep(world: World, stored: StoredResponse, events: list[Any] | None = None) -> StoredResponse:
    batch = EventBatch(events[0]["sequence_number"], encoded(events)) if events else None
    assert world.run(world.store.save(stored, events=batch))
    return stored


class Reading:
    """A follower: what it was told so far."""

    def __init__(self, world: World, found: StoredResponse, after: int = -1) -> None:
        self.events: list[Any] = []
        self.task = world.launch(self._read(world, found, after))

    async def _read(self, world: World, found: StoredResponse, after: int) -> None:
        async for batch in await read_events(world.store, found, after):
            assert batch, "nothing is told for nothing"
            self.events += map(json.loads, batch)

    @property
    def over(self) -> bool:
        return self.task.done() and self.task.exception() is None

    @property
    def numbers(self) -> list[int]:
        return [event["sequence_number"] for event in self.events]


# ── what was kept ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("after", range(-1, LAST + 1))
def test_kept_events_come_again_behind_the_last_one_seen(world: World, after: int) -> None:
    found = keep(world, record(background=True), TOLD)
    reading = Reading(world, found, after)
    assert reading.over
    assert reading.events == TOLD[after + 1 :]


def test_events_that_are_no_longer_kept_are_refused_before_the_first(world: World) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:2])
    world.store._max_event_bytes = 1
    world.run(world.store.append_events(ID, EventBatch(2, encoded(TOLD[2:4])), owner="ann"))

    async def begin() -> None:
        await read_events(world.store, found, -1)

    with pytest.raises(RequestRefused) as refused:
        world.run(begin())
    assert refused.value.code == "events_expired"


@pytest.mark.parametrize("status", ["in_progress", "completed"])
def test_who_saw_the_last_event_that_is_gone_is_told_those_behind_it(world: World, status: str) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:2])
    world.store._max_event_bytes = 1
    world.run(world.store.append_events(ID, EventBatch(2, encoded(TOLD[2:])), owner="ann"))
    if status != "in_progress":
        world.run(world.store.update_status(ID, status, owner="ann"))
        found = world.run(world.store.load(ID, owner="ann"))
    reading = Reading(world, found, 1)
    assert reading.events == TOLD[2:]


def test_who_saw_the_end_is_told_nothing_when_all_is_gone(world: World) -> None:
    found = keep(world, record(background=True), TOLD)
    world.run(world.store.prune(events_older_than=found.created_at + 1))
    reading = Reading(world, found, LAST)
    assert reading.over
    assert reading.events == []


# ── what is being made elsewhere ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_what_another_process_tells_comes_when_it_is_kept(world: World, kept: int) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:kept])
    reading = Reading(world, found)
    assert reading.events == TOLD[:kept]
    for at in range(kept, LAST):
        world.run(world.store.append_events(ID, EventBatch(at, encoded(TOLD[at : at + 1])), owner="ann"))
        world.quiet()
        assert reading.events == TOLD[: at + 1]
    assert not reading.over
    keep(world, record(background=True), TOLD[LAST:])
    world.quiet()
    assert reading.over
    assert reading.events == TOLD


def test_who_saw_a_part_is_not_told_it_again(world: World) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:4])
    reading = Reading(world, found, after=3)
    assert (reading.events, reading.over) == ([], False)
    keep(world, record(background=True), TOLD[4:])
    world.quiet()
    assert reading.over
    assert reading.events == TOLD[4:]


def test_a_change_that_nobody_announces_is_seen_after_a_moment(world: World) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:2])
    reading = Reading(world, found)
    told, world.store._changes.tell = world.store._changes.tell, lambda: None
    keep(world, record(background=True), TOLD[2:])
    world.quiet()
    assert not reading.over
    world.flow(1)
    assert reading.over
    assert reading.events == TOLD
    world.store._changes.tell = told


def test_what_is_deleted_meanwhile_ends_as_cancelled(world: World) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:3])
    reading = Reading(world, found)
    world.run(world.store.delete(ID, owner="ann"))
    world.quiet()
    assert reading.over
    assert reading.numbers == [0, 1, 2, 3]
    assert (reading.events[-1]["type"], reading.events[-1]["response"]["status"]) == ("response.failed", "cancelled")


@pytest.mark.parametrize("after", [-1, 2])
def test_an_end_that_was_never_told_follows_what_was(world: World, after: int) -> None:
    """Its gateway crashed, and another one ended it."""
    found = keep(world, record("in_progress", background=True), TOLD[:3])
    reading = Reading(world, found, after)
    world.run(world.store.update_status(ID, "failed", owner="ann"))
    world.quiet()
    assert reading.over
    assert reading.numbers == list(range(after + 1, 4))
    assert reading.events[-1]["type"] == "response.failed"


def test_what_ended_before_anything_was_told_is_told_whole(world: World) -> None:
    reading = Reading(world, keep(world, record("queued", background=True)))
    assert not reading.over
    world.run(world.store.update_status(ID, "cancelled", owner="ann"))
    world.quiet()
    assert reading.over
    assert [event["type"] for event in reading.events] == [
        "response.created",
        "response.in_progress",
        "response.failed",
    ]
    assert reading.numbers == [0, 1, 2]


# ── what is over ───────────────────────────────────────────────────────────────────────────────────────


def outline(events: list[Any]) -> bytes:
    made = Outline()
    made.add(events)
    return made.pack()


@pytest.mark.parametrize("after", [-1, 0, 3, LAST - 1, LAST])
def test_a_foreground_stream_is_told_as_it_was(world: World, after: int) -> None:
    found = keep(world, record(memo=outline(TOLD)))
    reading = Reading(world, found, after)
    assert reading.over
    assert reading.numbers == list(range(after + 1, LAST + 1))
    assert [event["type"] for event in reading.events] == [event["type"] for event in TOLD[after + 1 :]]
    assert [event.get("delta") for event in reading.events] == [event.get("delta") for event in TOLD[after + 1 :]]


def test_what_nobody_was_told_is_told_anew(world: World) -> None:
    reading = Reading(world, keep(world, record()))
    assert reading.over
    assert check_stream(reading.events)["output_text"] == "one two three"


def test_how_it_was_told_is_refused_where_that_is_not_known_any_more(world: World) -> None:
    found = keep(world, record(memo=b"nonsense"))
    assert check_stream(Reading(world, found).events)["output_text"] == "one two three"
    refused = Reading(world, found, after=0).task.exception()
    assert isinstance(refused, RequestRefused)
    assert (refused.code, refused.param) == ("events_expired", "starting_after")


@pytest.mark.parametrize(("after", "told"), [(1, [2]), (2, []), (5, [6])])
def test_an_end_told_from_the_store_is_told_once(world: World, after: int, told: list[int]) -> None:
    """A background response of which nothing was kept: its whole life had three events, if it was told from here."""
    found = keep(world, record("failed", background=True, output=[]))
    reading = Reading(world, found, after)
    assert reading.over
    assert reading.numbers == told


@pytest.mark.parametrize(("after", "told"), [(3, []), (2, [3]), (9, [10])])
def test_behind_what_was_kept_there_is_one_end(world: World, after: int, told: list[int]) -> None:
    found = keep(world, record("failed", background=True), TOLD[:3])
    assert Reading(world, found, after).numbers == told


# ── what this process makes ────────────────────────────────────────────────────────────────────────────


def following(world: World, found: StoredResponse, told: list[list[Any]], after: int = -1) -> tuple[list[Any], Any]:
    events: list[Any] = []

    async def live() -> AsyncIterator[list[bytes]]:
        for batch in told:
            yield list(encoded(batch))
            await asyncio.sleep(0)

    async def read() -> None:
        async for batch in follow_run(world.store, found, live(), after):
            events.extend(map(json.loads, batch))

    return events, world.launch(read())


def test_a_run_of_this_process_is_told_as_it_comes_and_not_read_again(world: World) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:2])
    events, task = following(world, found, [TOLD[:2], TOLD[2:]])
    assert task.done()
    assert events == TOLD


@pytest.mark.parametrize("after", [-1, 1])
@pytest.mark.parametrize("told", [2, 4])
def test_a_run_that_is_taken_from_this_process_goes_on_in_the_store(world: World, told: int, after: int) -> None:
    found = keep(world, record("in_progress", background=True), TOLD[:4])
    events, task = following(world, found, [TOLD[after + 1 : told]] if told > after + 1 else [], after)
    assert events == TOLD[after + 1 : 4]
    assert not task.done()
    keep(world, record(background=True), TOLD[4:])
    world.quiet()
    assert task.done()
    assert events == TOLD[after + 1 :]


def test_whoever_saw_the_end_of_a_run_that_has_not_left_this_process_yet_is_told_nothing_more(world: World) -> None:
    found = keep(world, record(background=True), TOLD)
    events, task = following(world, found, [], LAST)
    assert task.done()
    assert events == []


@pytest.mark.parametrize(
    ("said", "background"), [({"background": True}, True), ({"background": False}, False), ({}, False)]
)
def test_what_was_made_in_the_background_says_so_itself(said: dict[str, Any], background: bool) -> None:
    assert is_background(StoredResponse("r", msgspec.json.encode({**said, "output": []}))) is background
    assert not is_background(StoredResponse("r", b'{"background":null}'))
