"""What is rare in the machine, told step by step: queues, places, leases, and processes that sleep or die."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gateway.house import start, start_in_background
from gateway.world import ANN, LEASE, World, follow, make, sleep, stored, wake
from isthmus.bridge.deltas import Text
from isthmus.errors import ConfigError


def test_what_a_sleeper_says_too_late_is_not_written(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    here, there = follow(world, one, id), follow(world, two, id)
    (asked,) = world.upstream.open
    asked.say(Text("so far"))
    world.quiet()
    sleep(one)
    asked.end("too late")
    world.flow(LEASE + 1)
    assert world.flow_until(world.spawn(two, two.gateway.orphans.look()), 1) == 1
    wake(world, one)
    world.flow(5)
    assert stored(world, id)["status"] == "failed"
    for events in (here, there):
        *_, last, over = events
        assert (last["type"], over) == ("response.failed", "over")
        assert last["response"]["error"] == stored(world, id)["error"]
        assert [event["sequence_number"] for event in events[:-1]] == list(range(len(events) - 1))
    assert world.upstream.open == []


@pytest.mark.parametrize("last_words", ["", "too late"])
def test_a_response_that_was_deleted_while_its_maker_slept_stays_deleted(world: World, last_words: str) -> None:
    """Without last words the end itself is the first that it wants to write."""
    one, two = world.begin(), world.begin()
    id = make(world, one)
    (asked,) = world.upstream.open
    asked.say(Text("so far"))
    world.quiet()
    sleep(one)
    asked.end(last_words)
    world.flow_until(world.spawn(two, two.gateway.delete(ANN, id)), LEASE + 5)
    wake(world, one)
    assert stored(world, id) is None
    assert world.look(world.store.events(id, owner="ann")) == []


def test_who_waits_for_a_place_can_be_cancelled_and_deleted(world: World) -> None:
    process = world.begin()
    ids = [make(world, process) for _ in range(4)]
    assert len(world.upstream.open) == 2
    cancelled = world.spawn(process, process.gateway.cancel(ANN, ids[2]))
    deleted = world.spawn(process, process.gateway.delete(ANN, ids[3]))
    assert cancelled.result().status == "cancelled"
    assert deleted.done()
    assert stored(world, ids[3]) is None
    world.upstream.open[0].end("done")
    world.quiet()
    assert len(world.upstream.asked) == 2, "what was cancelled in the queue is never asked for"
    make(world, process)
    assert len(world.upstream.open) == 2, "the place is free again"


def test_a_run_that_is_stopped_before_its_first_step_does_not_wait_for_a_place(world: World) -> None:
    process = world.begin()
    for _ in range(2):
        make(world, process)

    async def start_and_cancel() -> str:
        id = await start_in_background(process.gateway, ANN)
        return (await process.gateway.cancel(ANN, id)).status

    assert world.spawn(process, start_and_cancel()).result() == "cancelled"


def test_a_shutdown_ends_those_who_wait_too(world: World) -> None:
    process = world.begin()
    ids = [make(world, process) for _ in range(4)]
    world.flow_until(world.spawn(process, process.gateway.drain(0)), 1)
    assert [stored(world, id)["status"] for id in ids] == ["failed"] * 4
    assert {stored(world, id)["error"]["code"] for id in ids} == {"server_is_overloaded"}
    assert len(world.upstream.asked) == 2, "nobody took a place that became free"
    assert not world.look(world.store.renew(process.gateway.runs.holder, seconds=LEASE)).names


def test_all_that_was_told_can_be_told_again(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    live = follow(world, one, id)
    (asked,) = world.upstream.open
    one.wire.failing = "writes"
    asked.say()
    world.quiet()
    one.wire.failing = None
    asked.end("every word")
    world.quiet()
    assert live[-1] == "over"
    for process in (one, two):
        assert follow(world, process, id) == live
        assert follow(world, process, id, after=2) == live[3:]
        assert follow(world, process, id, after=live[-2]["sequence_number"]) == ["over"]


def test_what_could_not_be_kept_on_the_way_is_kept_with_the_end(world: World) -> None:
    one, two = world.begin(), world.begin()
    one.wire.append_events = _full_disk  # type: ignore[attr-defined]
    id = make(world, one)
    live = follow(world, one, id)
    world.upstream.open[0].end("every word")
    world.quiet()
    assert (live[-2]["type"], live[-1]) == ("response.completed", "over")
    assert follow(world, two, id) == live


def test_a_lease_that_could_not_be_given_back_is_not_kept_alive(world: World) -> None:
    one, two = world.begin(), world.begin()
    lost, other = make(world, one), make(world, one)
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    one.wire.failing = "writes"
    world.upstream.open[0].end("not kept")
    world.quiet()
    one.wire.failing = None
    world.flow(LEASE / 2)
    world.spawn(two, two.gateway.orphans.look())
    assert stored(world, lost)["status"] == "failed"
    assert stored(world, other)["status"] == "in_progress"


def test_a_lease_that_could_not_be_given_back_is_given_back_at_the_latest_with_the_end(world: World) -> None:
    process = world.begin()
    make(world, process)
    process.wire.failing = "writes"
    world.upstream.open[0].end("not kept")
    world.quiet()
    process.wire.failing = None
    world.flow_until(world.spawn(process, process.gateway.aclose()), 10)
    assert not world.look(world.store.renew(process.gateway.runs.holder, seconds=LEASE)).names


def test_no_lease_is_left_by_what_could_not_begin(world: World) -> None:
    process = world.begin()
    save, process.wire.save = process.wire.save, _full_disk  # type: ignore[attr-defined]
    assert world.spawn(process, start_in_background(process.gateway, ANN)).exception() is not None
    process.wire.save = save  # type: ignore[attr-defined]
    assert not world.look(world.store.renew(process.gateway.runs.holder, seconds=LEASE)).names
    assert len(process.gateway.runs._background) == 0


async def _full_disk(*given: Any, **named: Any) -> bool:
    raise ConfigError("the disk is full", code="store_unavailable")


@pytest.mark.parametrize("deed", ["cancel", "delete"])
def test_what_a_dead_process_made_is_ended_when_its_lease_is_over(world: World, deed: str) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    world.kill(one)
    asking = world.spawn(two, getattr(two.gateway, deed)(ANN, id))
    world.flow(LEASE / 2)
    assert not asking.done(), "it could still be alive"
    world.flow(LEASE / 2 + 2)
    assert asking.done()
    assert (stored(world, id) or {"status": None})["status"] == {"cancel": "cancelled", "delete": None}[deed]


def test_a_cancel_that_was_lost_with_the_lease_is_told_again(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    asking = world.spawn(two, two.gateway.cancel(ANN, id))
    two.wire.thaw, slept = asyncio.Event(), two.wire
    world.loop.skip(LEASE + 1)  # both sleep; the maker wakes first, and takes its lease anew
    one.wire.failing = None
    world.quiet()
    world.flow(1)
    slept.wake()
    world.flow(10)
    assert asking.done()
    assert stored(world, id)["status"] == "cancelled"


def test_a_delete_does_not_wait_for_a_client_that_does_not_read(world: World) -> None:
    process = world.begin()
    run = world.spawn(process, start(process.gateway, ANN)).result()
    events: list[Any] = []

    async def read_once() -> None:
        async for batch in run.events():
            events.extend(batch)
            await asyncio.Event().wait()

    reader = world.spawn(process, read_once())
    world.upstream.open[0].say()
    world.quiet()
    deleting = world.spawn(process, process.gateway.delete(ANN, run.id))
    assert not deleting.done()
    world.flow(3)
    assert deleting.done()
    assert reader.cancelled()
    assert stored(world, run.id) is None
    assert world.upstream.open == []


def test_what_could_not_be_stored_is_told_as_failed(world: World) -> None:
    process = world.begin()
    run = world.spawn(process, start(process.gateway, ANN)).result()
    process.wire.failing = "writes"
    folding = world.spawn(process, run.fold())
    world.upstream.open[0].end("an answer")
    world.quiet()
    assert folding.result()["status"] == "failed"
    assert "could not be stored" in folding.result()["error"]["message"]
    assert stored(world, run.id) is None


def test_a_client_that_leaves_closes_the_upstream_and_what_there_was_is_kept(world: World) -> None:
    process = world.begin()
    run = world.spawn(process, start(process.gateway, ANN)).result()
    reading = world.spawn(process, run.fold())
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    run.stop("left")
    world.quiet()
    assert reading.done()
    assert world.upstream.open == []
    assert (stored(world, run.id)["status"], stored(world, run.id)["output_text"]) == ("cancelled", "so far")


def test_only_the_last_events_are_kept_in_memory_and_a_latecomer_reads_the_rest_in_the_store(world: World) -> None:
    process = world.begin()
    runs = process.gateway.runs
    runs._limits = replace(runs._limits, told=2_000)
    id = make(world, process)
    early = follow(world, process, id)
    (asked,) = world.upstream.open
    for number in range(100):
        asked.say(Text(f"word {number} "))
        world.quiet()
    (entry,) = runs._background.values()
    assert sum(map(len, entry._events)) <= 2_000
    late = follow(world, process, id)
    world.flow(5)
    assert [event["sequence_number"] for event in late] == list(range(len(late)))
    assert len(late) > 100
    asked.end("at last")
    world.flow(5)
    for events in (early, late):
        *told, over = events
        assert over == "over"
        assert [event["sequence_number"] for event in told] == list(range(len(told)))
        assert told[-1]["type"] == "response.completed"
    assert early == late
