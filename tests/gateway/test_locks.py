"""Locks: one at a time, extended while they are needed, and given back whatever happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.gateway.locks import Locks
from isthmus.store.memory import MemoryStore
from own_time import OwnTime

LEASE = 30.0


class Stage(OwnTime):
    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryStore(now=self.loop.time)
        self.running: set[tuple[str, str]] = set()

    def locks(self, holder: str = "gw", store: Any = None) -> Locks:
        def under_way(owner: str, id: str) -> bool:
            return (owner, id) in self.running

        return Locks(store or self.store, holder, lease=LEASE, under_way=under_way)

    @property
    def held(self) -> bool:
        return self.store._leases.holder(("ann", "c")) is not None


@pytest.fixture
def stage() -> Any:
    made = Stage()
    yield made
    made.close()


def test_two_turns_of_one_gateway_exclude_each_other_as_those_of_two_do(stage: Stage) -> None:
    one, two = stage.locks(), stage.locks("other")
    lock = stage.run(one.take("ann", "c", "r1"))
    assert lock is not None
    for locks in (one, two):
        assert stage.run(locks.take("ann", "c", "r2")) is None
    assert stage.run(two.take("bob", "c", "r3")) is not None
    assert stage.run(two.take("ann", "other", "r4")) is not None
    stage.run(lock.release())
    stage.run(lock.release())
    assert stage.run(two.take("ann", "c", "r2")) is not None


def test_it_lasts_for_as_long_as_its_run_and_not_longer(stage: Stage) -> None:
    stage.running.add(("ann", "r1"))
    stage.run(stage.locks().take("ann", "c", "r1"))
    stage.flow(10 * LEASE)
    assert stage.held
    stage.running.clear()
    stage.flow(2 * LEASE)
    assert not stage.held


def test_one_that_is_for_no_run_lasts_until_it_is_given_back(stage: Stage) -> None:
    lock = stage.run(stage.locks().take("ann", "c"))
    assert lock is not None
    stage.flow(10 * LEASE)
    assert stage.held
    stage.run(lock.release())
    assert not stage.held


def test_one_that_is_cancelled_while_it_is_taken_is_given_back(stage: Stage) -> None:
    taken = asyncio.Event()

    class Slow(MemoryStore):
        async def claim(self, *names: Any, **options: Any) -> bool:
            won = await super().claim(*names, **options)
            taken.set()
            await asyncio.sleep(5)
            return won

    slow = Slow(now=stage.loop.time)
    task = stage.launch(stage.locks(store=slow).take("ann", "c", "r1"))
    assert taken.is_set()
    task.cancel()
    stage.quiet()
    assert task.cancelled()
    assert slow._leases.holder(("ann", "c")) is None


def test_who_waits_for_the_release_may_be_cancelled(stage: Stage) -> None:
    class Slow(MemoryStore):
        async def release(self, *names: Any, **options: Any) -> None:
            await asyncio.sleep(5)
            await super().release(*names, **options)

    slow = Slow(now=stage.loop.time)
    lock = stage.run(stage.locks(store=slow).take("ann", "c", "r1"))
    task = stage.launch(lock.release())
    task.cancel()
    stage.flow(6)
    assert slow._leases.holder(("ann", "c")) is None


def test_a_store_that_is_out_of_order_ends_nothing(stage: Stage) -> None:
    class Failing(MemoryStore):
        failing = False

        async def claim(self, *names: Any, **options: Any) -> bool:
            if self.failing:
                raise StoreUnavailable("full")
            return await super().claim(*names, **options)

        async def release(self, *names: Any, **options: Any) -> None:
            raise StoreUnavailable("full")

    store = Failing(now=stage.loop.time)
    stage.running.add(("ann", "r1"))
    locks = stage.locks(store=store)
    lock = stage.run(locks.take("ann", "c", "r1"))
    store.failing = True
    stage.flow(LEASE / 2)
    store.failing = False
    stage.flow(LEASE)
    assert store._leases.holder(("ann", "c")) is not None, "it is extended when that is possible"
    stage.run(lock.release())
    stage.flow(2 * LEASE)
    assert store._leases.holder(("ann", "c")) is None, "what cannot be given back runs out"


def test_closing_gives_back_what_is_held(stage: Stage) -> None:
    locks = stage.locks()
    stage.run(locks.take("ann", "c", "r1"))
    stage.run(locks.aclose())
    assert not stage.held
