"""What was switched at one gateway, all others on its store do, also those that start later."""

from __future__ import annotations

import time
from typing import Any

import pytest

from every_store import Clock, every_shared_store
from isthmus.access.book import Book
from isthmus.observe.traces.tracer import Tracer
from isthmus.ports import Store
from isthmus.ports.keys import Deed
from isthmus.server.switches import CAPTURE, LOOKED_AT, obeying
from isthmus.store.memory import MemoryStore


def tracer() -> Tracer:
    nobody: Any = None
    return Tracer(nobody)


def book(store: Store, obeys: Tracer) -> Book[str]:
    return Book(store, lambda key: key.name, obey=obeying(store, obeys))


def switch(at: float, **details: str) -> Deed:
    return Deed(at, "cli", CAPTURE, "", details)


@every_shared_store
async def test_full_capture_is_switched_on_and_off_for_all(one: Store, two: Store, clock: Clock) -> None:
    there = tracer()
    looks = book(two, there)
    await looks.look()
    assert not there.wants_all("team", "", 1)
    await one.note_deed(switch(time.time(), seconds="60", owner="team", key=""))
    await looks.look()
    assert there.wants_all("team", "", 1)
    assert not there.wants_all("another", "", 1)
    later = tracer()
    await book(two, later).look()
    assert later.wants_all("team", "", 1), "one that starts later"
    await one.note_deed(switch(time.time(), seconds="0"))
    await looks.look()
    assert not there.wants_all("team", "", 1)


@pytest.mark.parametrize("details", [{"seconds": "60"}, {"seconds": "soon"}, {}])
async def test_what_is_over_or_cannot_be_read_captures_nothing(details: dict[str, str]) -> None:
    store, here = MemoryStore(), tracer()
    await store.note_deed(switch(time.time() - 61, **details))
    await book(store, here).look()
    assert not here.wants_all("", "", 1)


async def test_of_many_deeds_the_last_switch_counts_and_no_more_are_read_than_a_bound() -> None:
    store, here = MemoryStore(), tracer()
    await store.note_deed(switch(time.time(), seconds="60"))
    for number in range(LOOKED_AT - 1):
        await store.note_deed(Deed(time.time(), "cli", "page.enter", str(number)))
    await book(store, here).look()
    assert here.wants_all("", "", 1)
    await store.note_deed(Deed(time.time(), "cli", "page.enter", "one more"))
    late = tracer()
    await book(store, late).look()
    await book(store, here).look()
    assert (here.wants_all("", "", 1), late.wants_all("", "", 1)) == (True, False)


def test_without_traces_there_is_nothing_to_switch() -> None:
    assert obeying(MemoryStore(), None) is None
