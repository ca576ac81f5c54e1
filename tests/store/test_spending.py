"""What every store answers about spending, asked through two store objects as two processes have them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from every_store import Clock, every_shared_store, every_store
from isthmus.ports import Store
from isthmus.ports.spending import SETTLED_KEPT, Hold, Refusal, Use
from isthmus.store.memory import MemoryStore

MONTH, DAY = "2026-11-01", "2026-11-17"


def use(nanos: int = 0, day: str = DAY, key: str = "key_a", team: str = "", model: str = "m", **more: int) -> Use:
    owner = f"team:{team}" if team else key
    return Use(day, owner, key, team, "deepseek", model, **{"requests": 1, "nanos": nanos, **more})


def hold(nanos: int, most: int = 100, purse: str = "key:key_a", since: str = DAY) -> Hold:
    return Hold(purse, since, nanos, most)


@every_shared_store
async def test_what_is_held_in_one_process_is_not_there_for_another(one: Store, two: Store, clock: Clock) -> None:
    assert await one.hold("r1", [hold(60)], seconds=30) is None
    assert await two.hold("r2", [hold(50)], seconds=30) == Refusal(hold(50), used=0, held=60)
    assert await two.hold("r2", [hold(40)], seconds=30) is None
    assert await one.held("key:key_a") == 100
    assert await one.held("key:another") == 0


@every_shared_store
async def test_a_hundred_holds_at_once_are_never_more_than_the_budget(one: Store, two: Store, clock: Clock) -> None:
    async def ask(number: int) -> bool:
        store = (one, two)[number % 2]
        return await store.hold(f"r{number}", [hold(7)], seconds=30) is None

    given_ = await asyncio.gather(*map(ask, range(100)))
    assert given_.count(True) == 100 // 7
    assert await one.held("key:key_a") == await two.held("key:key_a") == 98


@every_shared_store
async def test_all_purses_have_enough_or_none_is_touched(one: Store, two: Store, clock: Clock) -> None:
    team = hold(60, most=50, purse="team:t")
    assert await one.hold("r1", [hold(60), team], seconds=30) == Refusal(team, 0, 0)
    assert await two.held("key:key_a") == await two.held("team:t") == 0


@every_shared_store
async def test_a_day_and_a_month_of_one_purse_are_one_sum_of_money(one: Store, two: Store, clock: Clock) -> None:
    await one.note_uses([use(70, day="2026-11-03")])
    month = hold(40, most=120, since=MONTH)
    assert await one.hold("r1", [hold(40), month], seconds=30) is None
    assert await two.held("key:key_a") == 40
    assert await two.hold("r2", [hold(20), replace(month, nanos=20)], seconds=30) == Refusal(
        replace(month, nanos=20), used=70, held=40
    )
    assert await two.hold("r2", [hold(20)], seconds=30) is None


@every_shared_store
async def test_to_hold_anew_is_to_hold_instead(one: Store, two: Store, clock: Clock) -> None:
    assert await one.hold("r1", [hold(60)], seconds=30) is None
    clock.at += 20
    assert await one.hold("r1", [hold(80)], seconds=30) is None
    assert await two.held("key:key_a") == 80
    assert await one.hold("r1", [hold(101)], seconds=30) is not None
    assert await two.held("key:key_a") == 80, "what it had it still has"
    clock.at += 29
    assert await two.held("key:key_a") == 80, "and for longer"


@every_shared_store
async def test_what_a_dead_process_held_is_free_again(one: Store, two: Store, clock: Clock) -> None:
    assert await one.hold("r1", [hold(100)], seconds=30) is None
    clock.at += 29.9
    assert await two.hold("r2", [hold(1)], seconds=30) is not None
    clock.at += 0.1
    assert await two.hold("r2", [hold(100)], seconds=30) is None
    assert await two.held("key:key_a") == 100


@every_shared_store
async def test_to_settle_frees_and_writes_down_in_one_step(one: Store, two: Store, clock: Clock) -> None:
    await one.hold("r1", [hold(60)], seconds=30)
    await one.settle("r1", [use(25)])
    assert await two.held("key:key_a") == 0
    assert await two.hold("r2", [hold(76)], seconds=30) == Refusal(hold(76), used=25, held=0)
    assert await two.hold("r2", [hold(75)], seconds=30) is None


@every_shared_store
async def test_it_is_settled_once_whoever_tries_again(one: Store, two: Store, clock: Clock) -> None:
    await one.hold("r1", [hold(60)], seconds=30)
    await asyncio.gather(*(store.settle("r1", [use(25)]) for store in (one, two, one, two)))
    clock.at += SETTLED_KEPT - 1
    await two.settle("r1", [use(25)])
    assert [each.nanos for each in await one.uses(since=DAY, until=DAY)] == [25]


@every_shared_store
async def test_what_was_used_counts_although_its_hold_is_over_or_was_too_small(
    one: Store, two: Store, clock: Clock
) -> None:
    await one.hold("r1", [hold(10)], seconds=30)
    clock.at += 100
    await one.settle("r1", [use(150)])
    await one.settle("never held", [use(1)])
    assert await two.hold("r2", [hold(0)], seconds=30) == Refusal(hold(0), used=151, held=0)


@every_shared_store
async def test_a_purse_is_of_one_key_or_of_a_whole_team(one: Store, two: Store, clock: Clock) -> None:
    await one.note_uses([use(10, team="t"), use(20, key="key_b", team="t"), use(40, key="key_c")])
    assert await two.hold("r1", [hold(0, most=0, purse="team:t")], seconds=1) == Refusal(
        hold(0, most=0, purse="team:t"), used=30, held=0
    )
    for key, used in (("key_a", 10), ("key_b", 20), ("key_c", 40)):
        refusal = await two.hold("r1", [hold(0, most=0, purse=f"key:{key}")], seconds=1)
        assert refusal is not None
        assert refusal.used == used


@every_store()
async def test_sums_are_told_by_what_is_asked(store: Store) -> None:
    await store.note_uses(
        [
            use(1, day="2026-11-16", input_tokens=10, cached_tokens=5, output_tokens=2, unpriced=1),
            use(2, input_tokens=1),
            use(3, model="n"),
            use(4, key="key_b", team="t"),
        ]
    )
    await store.note_uses([use(5, input_tokens=2)])
    whole = await store.uses(since="2026-11-16", until=DAY, by=())
    assert [(each.requests, each.nanos, each.input_tokens, each.unpriced) for each in whole] == [(5, 15, 13, 1)]
    days = await store.uses(since="2026-11-16", until=DAY, by=("day",))
    assert [(each.day, each.key, each.nanos) for each in days] == [("2026-11-16", "", 1), (DAY, "", 14)]
    by_key = await store.uses(since=DAY, until=DAY, by=("model", "key"))
    assert [(each.key, each.model, each.nanos) for each in by_key] == [
        *(("key_a", "m", 7), ("key_a", "n", 3), ("key_b", "m", 4))
    ]
    assert [each.nanos for each in await store.uses(since=DAY, until=DAY, owner="team:t", by=("owner",))] == [4]
    assert [each.nanos for each in await store.uses(since=DAY, until=DAY, key="key_a", by=())] == [10]
    assert [each.nanos for each in await store.uses(since=DAY, until=DAY, team="t", by=())] == [4]
    assert len(await store.uses(since="2026-11-16", until=DAY, most=2)) == 2
    assert await store.uses(since="2027-01-01", until="2027-01-02") == []
    assert await store.uses(since="2027-01-01", until="2027-01-02", by=()) == []


@every_store()
async def test_earlier_days_are_forgotten(store: Store) -> None:
    await store.note_uses([use(1, day=f"2026-11-{day:02}") for day in range(1, 18)])
    assert await store.prune_uses(before="2026-11-10") == 9
    assert [each.day for each in await store.uses(since="2026-01-01", until=DAY)][:1] == ["2026-11-10"]
    assert await store.prune_uses(before="2026-11-10") == 0


@every_store()
async def test_any_text_may_be_a_model(store: Store) -> None:
    await store.note_uses([use(1, model=model) for model in ("", "\ud800", "'; --", "ü" * 300)])
    assert sum(each.nanos for each in await store.uses(since=DAY, until=DAY)) == 4


STEPS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 60), st.booleans()), max_size=40)


@given(STEPS)
def test_what_is_held_and_used_within_holds_is_never_more_than_the_budget(
    steps: list[tuple[int, int, bool]],
) -> None:
    """Whoever uses no more than was set aside for it, and in time, never overdraws."""

    async def go() -> None:
        clock = Clock()
        store, held = MemoryStore(now=clock), dict[str, int]()
        for number, (run, nanos, ends) in enumerate(steps):
            id = f"r{run}"
            if ends and id in held:
                await store.settle(id + str(number), [use(min(nanos, held.pop(id)))])
                await store.hold(id, [], seconds=30)
            elif id not in held and await store.hold(id, [hold(nanos)], seconds=30) is None:
                held[id] = nanos
            used = sum(each.nanos for each in await store.uses(since=DAY, until=DAY, by=()))
            assert await store.held("key:key_a") == sum(held.values())
            assert used + sum(held.values()) <= 100

    asyncio.run(go())
