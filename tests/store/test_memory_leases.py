"""Who is at work on what, in one process: the contract is asked of every store in `test_leases`; here, what only
the memory store's own parts know: which attempts were changes, and who is woken by them."""

from __future__ import annotations

import asyncio

import pytest

from every_store import Clock
from isthmus.ports import Held, Signal
from isthmus.store.memory_leases import Changes, Leases
from own_time import clock, run_in_own_time, turns

R1, R2 = ("ann", "run:r1"), ("ann", "run:r2")


def leases() -> tuple[Leases, Clock]:
    now = Clock()
    return Leases(now), now


@pytest.mark.parametrize(("later", "free"), [(0, False), (9.9, False), (10, True), (-3600, False)])
def test_a_lease_ends_at_its_very_end(later: float, free: bool) -> None:
    held, now = leases()
    assert held.claim(R1, "a", 10)
    now.at += later
    assert held.holder(R1) == (None if free else "a")
    assert held.claim(R1, "b", 10) is free
    assert held.holder(R1) == ("b" if free else "a")


def test_extending_keeps_the_words_and_beginning_anew_does_not() -> None:
    held, now = leases()
    held.claim(R1, "a", 10)
    held.tell(R1, "cancel")
    held.claim(R1, "a", 20)
    now.at += 15
    assert held.renew("a", 10) == Held(frozenset({R1}), (Signal(*R1, "cancel"),))
    held.tell(R1, "cancel")
    now.at += 10
    held.claim(R1, "a", 10)
    assert held.renew("a", 10).signals == ()


def test_a_word_is_fresh_once_until_it_is_heard() -> None:
    held, now = leases()
    assert held.tell(R1, "cancel") == (False, False), "nobody is there"
    held.claim(R1, "a", 10)
    assert held.tell(R1, "cancel") == (True, True)
    assert held.tell(R1, "cancel") == (True, False)
    assert held.tell(R1, "delete") == (True, True)
    assert [signal.word for signal in held.renew("a", 10).signals] == ["cancel", "delete"]
    assert held.tell(R1, "cancel") == (True, True)
    now.at += 10
    assert held.tell(R1, "delete") == (False, False)


def test_signals_come_by_lease_in_the_order_of_their_names() -> None:
    held, _ = leases()
    for key in (R2, R1):
        held.claim(key, "a", 10)
        held.tell(key, "cancel")
    assert held.renew("a", 10).signals == (Signal(*R1, "cancel"), Signal(*R2, "cancel"))


def test_only_its_holder_gives_a_lease_back_and_is_told_whether_it_did() -> None:
    held, now = leases()
    held.claim(R1, "a", 10)
    assert not held.release(R1, "b")
    assert held.holder(R1) == "a"
    assert held.release(R1, "a")
    assert not held.release(R1, "a")
    held.claim(R1, "a", 10)
    now.at += 60
    assert held.release(R1, "a"), "one that has ended is still in the way of nobody"


def test_renewing_extends_ones_own_that_live_and_no_others() -> None:
    held, now = leases()
    held.claim(R1, "a", 10)
    held.claim(R2, "b", 10)
    now.at += 9
    assert held.renew("a", 10).names == {R1}
    now.at += 9
    assert (held.holder(R1), held.holder(R2)) == ("a", None)
    assert held.renew("b", 10).names == frozenset(), "too late"


def test_sweeping_takes_what_has_ended_and_nothing_else() -> None:
    held, now = leases()
    held.claim(R1, "a", 10)
    held.claim(R2, "a", 20)
    now.at += 10
    held.sweep()
    now.at -= 10
    assert held.renew("a", 10).names == {R2}
    assert len(held._leases) == 1


# ── changes ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_wait_ends_with_the_next_change_for_everybody() -> None:
    async def main() -> None:
        clock().stop_clock()
        changes = Changes()
        mark = await changes.watch(0, None)
        waiting = [asyncio.ensure_future(changes.watch(60, since)) for since in (mark, None, mark)]
        await turns()
        assert not any(task.done() for task in waiting)
        changes.tell()
        await turns()
        assert {task.result() for task in waiting} == {mark + 1}
        assert changes._waiting == {}

    run_in_own_time(main())


def test_what_changed_before_the_wait_began_ends_it_at_once() -> None:
    async def main() -> None:
        clock().stop_clock()
        changes = Changes()
        mark = await changes.watch(0, None)
        changes.tell()
        watching = asyncio.ensure_future(changes.watch(60, mark))
        await turns()
        assert watching.result() == mark + 1

    run_in_own_time(main())


def test_a_wait_in_vain_ends_in_time_with_the_same_mark() -> None:
    async def main() -> None:
        clock().stop_clock()
        changes = Changes()
        mark = await changes.watch(0, None)
        watching = asyncio.ensure_future(changes.watch(5, mark))
        await turns()
        clock().skip(4)
        await turns()
        assert not watching.done()
        clock().skip(1)
        await turns()
        assert watching.result() == mark
        assert changes._waiting == {}

    run_in_own_time(main())


def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    async def main() -> None:
        changes = Changes()
        watching = asyncio.ensure_future(changes.watch(60, None))
        await turns()
        watching.cancel()
        await asyncio.wait([watching])
        assert changes._waiting == {}

    run_in_own_time(main())


def test_an_attempt_in_vain_is_no_change() -> None:
    changes = Changes()
    assert changes.tell_if(False) is False
    assert changes._count == 0
    assert changes.tell_if(True) is True
    assert changes._count == 1
