"""What happens to background responses whose gateway is gone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.house import Upstream, make_gateway, start_in_background
from gateway.world import ANN, LEASE, Process, World, follow, make, sleep, stored, wake
from isthmus.bridge.deltas import Text
from isthmus.gateway.attempts import Attempts
from isthmus.ports import StoredResponse
from isthmus.store.memory import MemoryStore
from stored import turn


def look(world: World, process: Process) -> int:
    """The leases of the dead run out, and somebody looks."""
    world.flow(LEASE + 1)
    found: int = world.flow_until(world.spawn(process, process.gateway.orphans.look()), 1)
    return found


def test_what_nobody_was_told_anything_of_is_made_again(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    before = stored(world, id)
    there = follow(world, two, id)
    world.kill(one)
    assert look(world, two) == 1
    (asked,) = world.upstream.open
    asked.end("the second time")
    world.flow(2)
    after = stored(world, id)
    assert (after["status"], after["output_text"]) == ("completed", "the second time")
    assert after["created_at"] == before["created_at"]
    assert follow(world, two, id) == there
    assert [event["sequence_number"] for event in there[:-1]] == list(range(len(there) - 1))


def test_it_is_made_again_once(world: World) -> None:
    """A request that takes its gateway down would otherwise take down one after the other."""
    one, two = world.begin(), world.begin()
    id = make(world, one)
    world.kill(one)
    look(world, two)
    world.kill(two)
    three = world.begin()
    look(world, three)
    assert stored(world, id)["status"] == "failed"
    assert stored(world, id)["error"]["message"] == "the gateway stopped while this response was being made"
    assert world.upstream.open == []


def test_what_was_told_in_part_is_not_made_again(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    world.upstream.open[0].say(Text("so far"))
    world.quiet()
    world.kill(one)
    look(world, two)
    assert (stored(world, id)["status"], len(world.upstream.asked)) == ("failed", 1)


def test_nothing_is_told_before_the_store_knows_of_it(world: World) -> None:
    """Else the same response would be told twice, in different words."""
    one, two = world.begin(), world.begin()
    id = make(world, one)
    here = follow(world, one, id)
    one.wire.failing = "writes"
    world.upstream.open[0].say(Text("unheard of"))
    world.quiet()
    assert here == []
    world.kill(one)
    look(world, two)
    world.upstream.open[0].end("other words")
    world.quiet()
    assert stored(world, id)["output_text"] == "other words"


def test_the_same_is_asked_for_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = world.begin(), world.begin()
    bodies: list[Any] = []
    planned = Attempts.plan

    def plan(*given: Any) -> Any:
        made = planned(*given)
        bodies.append((made.body, made.strict if hasattr(made, "strict") else None))
        return made

    monkeypatch.setattr(Attempts, "plan", plan)
    parent = make(world, one)
    world.upstream.open[0].end("first")
    world.quiet()
    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    fields = {"instructions": "Be brief.", "tools": [tool], "temperature": 0.5, "previous_response_id": parent}
    world.spawn(one, start_in_background(one.gateway, ANN, **fields))
    world.kill(one)
    look(world, two)
    assert bodies[-1] == bodies[-2]
    assert [message["content"] for message in bodies[-1][0]["messages"]] == ["Be brief.", "hi", "first", "hi"]


def test_what_cannot_be_made_again_says_why(world: World) -> None:
    one, two = world.begin(), world.begin()
    parent = make(world, one)
    world.upstream.open[0].end("first")
    world.quiet()
    id = world.spawn(one, start_in_background(one.gateway, ANN, previous_response_id=parent)).result()
    world.kill(one)
    world.spawn(two, two.gateway.delete(ANN, parent))
    look(world, two)
    assert stored(world, id)["status"] == "failed"
    assert "cannot be made again" in stored(world, id)["error"]["message"]
    assert parent in stored(world, id)["error"]["message"]


def test_without_room_it_waits_for_the_next_look(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    busy = [make(world, two) for _ in range(4)]
    world.kill(one)
    look(world, two)
    assert stored(world, id)["status"] == "in_progress"
    for _ in busy:
        world.upstream.open[0].end("done")
        world.quiet()
    look(world, two)
    world.upstream.open[0].end("at last")
    world.quiet()
    assert stored(world, id)["output_text"] == "at last"


def test_one_of_ours_that_was_asleep_is_no_orphan(world: World) -> None:
    one = world.begin()
    id = make(world, one)
    world.loop.skip(LEASE + 1)
    world.spawn(one, one.gateway.orphans.look())
    world.quiet()
    assert len(world.upstream.asked) == 1
    world.upstream.open[0].end("mine")
    world.quiet()
    assert stored(world, id)["output_text"] == "mine"


def test_who_wakes_and_finds_it_made_by_another_says_nothing(world: World) -> None:
    one, two = world.begin(), world.begin()
    id = make(world, one)
    here = follow(world, one, id)
    sleep(one)
    world.upstream.open[0].say(Text("from the first"))
    look(world, two)
    wake(world, one)
    world.flow(LEASE)
    (asked,) = world.upstream.open
    asked.end("from the second")
    world.flow(5)
    assert here[-1] == "over"
    assert here[-2]["response"]["output_text"] == "from the second"
    assert "from the first" not in json.dumps(here)


class Counting(MemoryStore):
    """Remembers how many orphans were asked for at once."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []

    async def expired(self, **named: int) -> list[StoredResponse]:
        found = await super().expired(**named)
        self.asked.append(len(found))
        return found


async def test_however_many_a_crash_leaves_they_are_seen_to_at_once_and_few_are_in_memory() -> None:
    store = Counting()
    for number in range(100):
        await store.save(turn(f"r{number}", status="in_progress"))
    gateway = make_gateway(store, Upstream())
    assert await gateway.orphans.look() == 100
    ended = [await store.load(f"r{number}") for number in range(100)]
    assert {record.status for record in ended if record is not None} == {"failed"}
    assert max(store.asked) <= 8
    await gateway.aclose()
