"""What was used is written once, whatever the store does meanwhile, and by nobody who is served."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from isthmus.access.ledger import EVERY, Ledger
from isthmus.errors import StoreUnavailable
from isthmus.ports.spending import Hold, Use
from isthmus.store.memory import MemoryStore
from own_time import clock, run_in_own_time, turns

DAY = "2026-11-17"


def use(nanos: int = 1, model: str = "m") -> Use:
    return Use(DAY, "key_a", "key_a", "", "p", model, 1, nanos=nanos)


class Flaky(MemoryStore):
    away = False
    writes = 0

    async def note_uses(self, uses: Sequence[Use]) -> None:
        self._look()
        await super().note_uses(uses)

    async def settle(self, id: str, uses: Sequence[Use]) -> None:
        self._look()
        await super().settle(id, uses)

    def _look(self) -> None:
        self.writes += 1
        if self.away:
            raise StoreUnavailable("gone")

    async def total(self) -> tuple[int, int]:
        found = await self.uses(since=DAY, until=DAY, by=())
        return sum(each.requests for each in found), sum(each.nanos for each in found)


def test_a_thousand_runs_are_one_write() -> None:
    async def go() -> None:
        store = Flaky()
        ledger = Ledger(store)
        for _ in range(1000):
            ledger.note([use()])
        await turns()
        assert await store.total() == (0, 0)
        clock().skip(EVERY)
        await turns()
        assert await store.total() == (1000, 1000)
        assert store.writes == 1
        await ledger.aclose()

    run_in_own_time(go())


def test_who_wants_money_waits_for_what_is_being_written() -> None:
    """Else what has ended counts with what was set aside for it, however much it used."""

    class Slow(MemoryStore):
        go = asyncio.Event()

        async def settle(self, id: str, uses: Sequence[Use]) -> None:
            await self.go.wait()
            await super().settle(id, uses)

    async def go() -> None:
        store = Slow()
        ledger = Ledger(store)
        assert await ledger.hold("r1", [Hold("key:key_a", DAY, 1, 100)]) is None
        ledger.settle("r1", [use(100)])
        await turns()
        wanted = asyncio.create_task(ledger.hold("r2", [Hold("key:key_a", DAY, 1, 100)]))
        await turns()
        store.go.set()
        assert await wanted is not None, "all of it is spent"
        await ledger.aclose()

    run_in_own_time(go())


def test_what_the_store_does_not_take_is_offered_again_and_counts_once() -> None:
    async def go() -> None:
        store = Flaky()
        ledger = Ledger(store)
        store.away = True
        ledger.note([use(2)])
        assert await ledger.hold("r1", [Hold("key:key_a", DAY, 5, 100)]) is None
        ledger.settle("r1", [use(3)])
        for _ in range(5):
            clock().skip(EVERY)
            await turns()
            ledger.note([use(1)])
        assert await store.total() == (0, 0)
        assert await store.held("key:key_a") == 5, "until it is written down, it is held"
        store.away = False
        assert await ledger.flush()
        assert await store.total() == (7, 10)
        assert await store.held("key:key_a") == 0
        await ledger.aclose()

    run_in_own_time(go())


def test_beyond_its_bound_the_rest_is_lost_and_counted() -> None:
    async def go() -> None:
        store = Flaky()
        store.away = True
        ledger = Ledger(store, most=3)
        for number in range(10):
            ledger.note([use(model=f"m{number}")])
            ledger.note([use(model="m0")])
            ledger.settle(f"r{number}", [use()])
        assert ledger.lost == 14
        store.away = False
        await ledger.aclose()
        assert (await store.total())[0] == 3 + 10 + 3 - 1 + 1

    run_in_own_time(go())


def test_money_is_held_for_as_long_as_its_run_goes_on() -> None:
    async def go() -> None:
        store = MemoryStore(now=lambda: clock().time())
        ledger = Ledger(store, hold=60.0)
        assert await ledger.hold("r1", [Hold("key:key_a", DAY, 60, 100)]) is None
        for _ in range(40):
            clock().skip(10.0)
            await turns()
            assert await store.held("key:key_a") == 60
        ledger.settle("r1", [])
        await ledger.aclose()
        assert await store.held("key:key_a") == 0

    run_in_own_time(go())


def test_who_asks_next_finds_what_has_just_ended_settled() -> None:
    async def go() -> None:
        store = MemoryStore()
        ledger = Ledger(store)
        for number in range(20):
            id = f"r{number}"
            assert await ledger.hold(id, [Hold("key:key_a", DAY, 90, 100)]) is None, number
            ledger.settle(id, [use(0)])
        await ledger.aclose()

    run_in_own_time(go())


def test_a_hold_whose_caller_went_away_is_free_again() -> None:
    async def go() -> None:
        class Slow(MemoryStore):
            async def hold(self, *given: object, **named: object) -> None:  # type: ignore[override]
                await super().hold(*given, **named)  # type: ignore[arg-type]
                await asyncio.Event().wait()

        store = Slow()
        ledger = Ledger(store)
        asking = asyncio.create_task(ledger.hold("r1", [Hold("key:key_a", DAY, 90, 100)]))
        await turns()
        assert await store.held("key:key_a") == 90
        asking.cancel()
        await asyncio.wait([asking])
        await ledger.aclose()
        assert await store.held("key:key_a") == 0

    run_in_own_time(go())


def test_nobody_works_where_there_is_nothing_to_write() -> None:
    async def go() -> None:
        ledger = Ledger(MemoryStore())
        ledger.note([use()])
        clock().skip(EVERY)
        await turns()
        clock().skip(EVERY)
        await turns()
        assert len(asyncio.all_tasks()) == 1
        await ledger.aclose()

    run_in_own_time(go())
