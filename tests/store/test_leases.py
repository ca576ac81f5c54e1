"""What every store answers about leases, asked through two store objects as two processes have them."""

from __future__ import annotations

import asyncio

from every_store import Clock, every_shared_store
from isthmus.ports import EventBatch, Held, Signal, Store
from own_time import clock as loop_clock
from stored import turn

NOTHING = Held(frozenset(), ())


def holding(*names: str, owner: str = "local") -> frozenset[tuple[str, str]]:
    return frozenset((owner, name) for name in names)


@every_shared_store
async def test_of_many_who_claim_at_once_one_gets_it(one: Store, two: Store, clock: Clock) -> None:
    claims = [
        store.claim("run:r1", holder=f"{side}{number}", seconds=10)
        for number in range(20)
        for side, store in (("one", one), ("two", two))
    ]
    assert sum(await asyncio.gather(*claims)) == 1


@every_shared_store
async def test_a_lease_is_somebody_elses_until_it_ends(one: Store, two: Store, clock: Clock) -> None:
    assert await one.claim("run:r1", holder="a", seconds=10)
    clock.at += 9.5
    assert not await two.claim("run:r1", holder="b", seconds=10)
    clock.at += 0.5
    assert await two.claim("run:r1", holder="b", seconds=10)
    assert not await one.claim("run:r1", holder="a", seconds=10)


@every_shared_store
async def test_claiming_again_extends_ones_own(one: Store, two: Store, clock: Clock) -> None:
    for _ in range(3):
        assert await one.claim("run:r1", holder="a", seconds=10)
        clock.at += 9
    assert not await two.claim("run:r1", holder="b", seconds=10)


@every_shared_store
async def test_renewing_extends_everything_one_holds_and_tells_what_that_is(
    one: Store, two: Store, clock: Clock
) -> None:
    assert await one.renew("a", seconds=10) == NOTHING
    await one.claim("run:r1", holder="a", seconds=10)
    await one.claim("conversation:c1", holder="a", seconds=10)
    await one.claim("run:r1", owner="ann", holder="a", seconds=10)
    await two.claim("run:r2", holder="b", seconds=10)
    for _ in range(3):
        clock.at += 9
        held = await one.renew("a", seconds=10)
    assert held == Held(holding("run:r1", "conversation:c1") | holding("run:r1", owner="ann"), ())
    assert await two.renew("b", seconds=10) == NOTHING


@every_shared_store
async def test_renewing_tells_what_was_lost(one: Store, two: Store, clock: Clock) -> None:
    for name in ("taken", "ended", "released", "kept"):
        await one.claim(name, holder="a", seconds=20 if name == "kept" else 10)
    clock.at += 10
    assert await two.claim("taken", holder="b", seconds=10)
    await one.release("released", holder="a")
    assert await one.renew("a", seconds=10) == Held(holding("kept"), ())
    assert await two.renew("b", seconds=10) == Held(holding("taken"), ())
    assert await one.claim("ended", holder="a", seconds=10)
    assert await one.renew("a", seconds=10) == Held(holding("kept", "ended"), ())


@every_shared_store
async def test_a_released_lease_can_be_taken_at_once(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    await two.release("run:r1", holder="b")
    assert not await two.claim("run:r1", holder="b", seconds=10), "only its holder can give it back"
    await one.release("run:r1", holder="a")
    await one.release("run:r1", holder="a")
    assert await two.claim("run:r1", holder="b", seconds=10)


@every_shared_store
async def test_signals_come_to_the_holder_and_only_once(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    await two.claim("run:r2", holder="b", seconds=10)
    for word in ("cancel", "delete", "cancel"):
        assert await two.signal("run:r1", word)
    assert await one.signal("run:r2", "cancel")
    assert (await two.renew("b", seconds=10)).signals == (Signal("local", "run:r2", "cancel"),)
    told = tuple(Signal("local", "run:r1", word) for word in ("cancel", "delete"))
    assert (await one.renew("a", seconds=10)).signals == told
    assert (await one.renew("a", seconds=10)).signals == ()
    assert await two.signal("run:r1", "cancel")
    assert (await one.renew("a", seconds=10)).signals == told[:1]


@every_shared_store
async def test_many_signals_at_once_all_arrive(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    words = {f"word {number}" for number in range(20)}
    hearing = asyncio.ensure_future(one.renew("a", seconds=10))
    assert all(await asyncio.gather(*(two.signal("run:r1", word) for word in words)))
    heard = await hearing
    rest = await one.renew("a", seconds=10)
    assert sorted(signal.word for signal in (*heard.signals, *rest.signals)) == sorted(words)


@every_shared_store
async def test_a_signal_needs_a_holder_and_does_not_outlive_the_lease(one: Store, two: Store, clock: Clock) -> None:
    assert not await two.signal("run:r1", "cancel")
    await one.claim("run:r1", holder="a", seconds=10)
    assert await two.signal("run:r1", "cancel")
    clock.at += 10
    assert not await two.signal("run:r1", "cancel")
    assert await two.claim("run:r1", holder="b", seconds=10)
    assert (await two.renew("b", seconds=10)).signals == ()
    assert (await one.renew("a", seconds=10)).signals == ()
    assert await one.signal("run:r1", "cancel")
    await two.release("run:r1", holder="b")
    assert await two.claim("run:r1", holder="b", seconds=10)
    assert (await two.renew("b", seconds=10)).signals == ()


@every_shared_store
async def test_extending_a_lease_keeps_what_was_told(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    await two.signal("run:r1", "cancel")
    await one.claim("run:r1", holder="a", seconds=10)
    assert (await one.renew("a", seconds=10)).signals == (Signal("local", "run:r1", "cancel"),)


@every_shared_store
async def test_nothing_crosses_owners(one: Store, two: Store, clock: Clock) -> None:
    await one.save(turn("r1", status="queued", owner="ann"))
    assert await one.claim("run:r1", owner="ann", holder="a", seconds=10)
    assert not await two.signal("run:r1", "cancel")
    assert not await two.signal("run:r1", "cancel", owner="bob")
    assert await two.claim("run:r1", owner="bob", holder="b", seconds=10)
    await two.release("run:r1", owner="bob", holder="a")
    assert await two.renew("b", seconds=10) == Held(holding("run:r1", owner="bob"), ())
    await one.release("run:r1", owner="ann", holder="a")
    assert [record.owner for record in await two.expired()] == ["ann"], "bob's lease is not on ann's response"


@every_shared_store
async def test_expired_lists_exactly_the_orphans(one: Store, two: Store, clock: Clock) -> None:
    for id, status, owner in (
        ("r1", "queued", "local"),
        ("r2", "in_progress", "ann"),
        ("r3", "in_progress", "local"),
        ("r4", "completed", "local"),
        ("r5", "failed", "local"),
        ("r6", "queued", "local"),
    ):
        await one.claim(f"run:{id}", owner=owner, holder="a", seconds=10 if id != "r3" else 30)
        await one.save(turn(id, status=status, owner=owner), holder="a")
    await one.delete("r6")
    assert await two.expired() == []
    await one.release("run:r1", holder="a")
    assert [record.id for record in await two.expired()] == ["r1"]
    clock.at += 10
    assert await two.expired() == [turn("r1", status="queued"), turn("r2", status="in_progress", owner="ann")]
    assert await two.claim("run:r2", owner="ann", holder="b", seconds=10)
    assert [record.id for record in await one.expired()] == ["r1"]


@every_shared_store
async def test_of_many_orphans_the_oldest_are_listed(one: Store, two: Store, clock: Clock) -> None:
    for number in range(30):
        await one.save(turn(f"r{number}", status="queued" if number % 2 else "completed"))
    assert [record.id for record in await two.expired(most=3)] == ["r1", "r3", "r5"]
    assert [record.id for record in await two.expired(most=9)] == [f"r{number}" for number in range(1, 18, 2)]
    assert len(await two.expired()) == 15


@every_shared_store
async def test_who_lost_a_response_cannot_write_it_any_more(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    assert await one.save(turn("r1", status="in_progress"), events=EventBatch(0, (b"0",)), holder="a")
    assert await one.append_events("r1", EventBatch(1, (b"1",)), holder="a")
    clock.at += 10
    await two.claim("run:r1", holder="b", seconds=10)
    assert not await one.save(turn("r1"), events=EventBatch(2, (b"2",)), holder="a")
    assert not await one.append_events("r1", EventBatch(2, (b"2",)), holder="a")
    assert await two.update_status("r1", "failed", only_from=("in_progress",))
    await two.release("run:r1", holder="b")
    assert not await one.save(turn("r1"), holder="a"), "nobody holds it, but it is finished"
    assert not await one.append_events("r1", EventBatch(2, (b"2",)), holder="a")
    found = await one.load("r1")
    assert found is not None
    assert found.status == "failed"
    assert await one.events("r1") == [b"0", b"1"]
    assert await one.save(turn("r1")), "without a holder nobody is asked"


@every_shared_store
async def test_a_lease_that_ended_and_that_nobody_took_does_no_harm(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    await one.save(turn("r1", status="in_progress"), holder="a")
    clock.at += 100
    assert await one.save(turn("r1"), holder="a")
    assert await two.load("r1") == turn("r1")


@every_shared_store
async def test_a_clock_that_jumps_ahead_ends_leases_and_says_so(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    clock.at += 86_400
    assert await one.renew("a", seconds=10) == NOTHING
    assert await two.claim("run:r1", holder="b", seconds=10)
    clock.at -= 86_400
    assert not await one.claim("run:r1", holder="a", seconds=10), "b took it, whatever the time is now"
    assert await two.renew("b", seconds=10) == Held(holding("run:r1"), ())
    clock.at += 10
    assert await one.claim("run:r1", holder="a", seconds=10), "renewing set the end by the clock of now"


@every_shared_store
async def test_a_clock_that_jumps_back_makes_leases_last_never_shared(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    clock.at -= 3_600
    assert not await two.claim("run:r1", holder="b", seconds=10)
    assert await one.renew("a", seconds=10) == Held(holding("run:r1"), ())
    clock.at += 10
    assert await two.claim("run:r1", holder="b", seconds=10)


@every_shared_store
async def test_pruning_sweeps_leases_that_ended_and_no_others(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("ended", holder="a", seconds=10)
    await one.claim("live", holder="a", seconds=20)
    clock.at += 10
    await two.prune()
    clock.at -= 10
    assert await one.renew("a", seconds=10) == Held(holding("live"), ())


@every_shared_store
async def test_watching_wakes_for_what_the_other_one_does(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    mark = await one.watch(0)
    changes = (
        lambda: two.save(turn("r1", status="queued")),
        lambda: two.append_events("r1", EventBatch(0, (b"{}",))),
        lambda: two.update_status("r1", "in_progress"),
        lambda: two.signal("run:r1", "cancel"),
        lambda: two.claim("run:r2", holder="b", seconds=10),
        lambda: two.release("run:r2", holder="b"),
        lambda: two.delete("r1"),
    )
    for change in changes:
        waiting = [asyncio.ensure_future(one.watch(3_600, since=mark)) for _ in range(3)]
        await change()
        async with asyncio.timeout(60):
            (mark,) = set(await asyncio.gather(*waiting))


@every_shared_store
async def test_watching_from_a_mark_misses_nothing_in_between(one: Store, two: Store, clock: Clock) -> None:
    mark = await one.watch(0)
    await two.save(turn("r1"))
    async with asyncio.timeout(60):
        assert await one.watch(3_600, since=mark) != mark


@every_shared_store
async def test_attempts_in_vain_wake_nobody(one: Store, two: Store, clock: Clock) -> None:
    await one.claim("run:r1", holder="a", seconds=10)
    mark = await one.watch(0)
    assert not await two.claim("run:r1", holder="b", seconds=10)
    assert not await two.signal("run:r9", "cancel")
    await two.release("run:r1", holder="b")
    await two.renew("b", seconds=10)
    assert not await two.save(turn("r1"), holder="b")
    loop_clock().skip(60)  # whoever looks again only after a while does so now
    assert await one.watch(0, since=mark) == mark
    assert await two.claim("run:r2", holder="b", seconds=10)
    loop_clock().skip(60)
    assert await one.watch(60, since=mark) != mark
