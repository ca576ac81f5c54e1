"""What every store answers about notices, asked through two store objects as two processes have them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from every_store import Clock, every_shared_store
from isthmus.ports import UNFINISHED, Backlog, Delivery, EventBatch, Notice, Store
from stored import turn


def notice(id: str, about: str = "", endpoint: str = "hook", most: int = 100) -> Notice:
    return Notice(id, endpoint, "response.completed", about or f"r-{id}", f'{{"id":"{id}"}}'.encode(), "ann", most)


async def queue(store: Store, *notices: Notice) -> None:
    for each in notices:
        assert await store.save(turn(each.about), notices=[each])


async def take(store: Store, most: int = 10, holder: str = "a", endpoint: str = "hook") -> list[str]:
    return [each.notice.id for each in await store.take_due(endpoint, holder=holder, seconds=20, most=most)]


@every_shared_store
async def test_a_notice_comes_with_the_response_and_is_as_it_was_queued(one: Store, two: Store, clock: Clock) -> None:
    queued = notice("n1")
    await queue(one, queued)
    clock.at += 3
    (taken,) = await two.take_due("hook", holder="b", seconds=20, most=5)
    # How many may wait is no part of what is kept.
    assert taken == Delivery(replace(queued, most=taken.notice.most), attempts=1, age=3.0, due=20.0)
    assert taken.notice.body == queued.body


@every_shared_store
async def test_what_is_not_saved_queues_nothing(one: Store, two: Store, clock: Clock) -> None:
    assert await one.claim("run:r-n1", holder="a", seconds=10)
    assert not await two.save(turn("r-n1"), holder="b", notices=[notice("n1")]), "another one makes it"
    with pytest.raises(ValueError, match="does not follow"):
        await one.save(turn("r-n2"), events=EventBatch(0, (b"0",)))
        await one.save(turn("r-n2"), events=EventBatch(7, (b"7",)), notices=[notice("n2")])
    await one.save(turn("r-n3"))
    await one.delete("r-n3")
    assert not await one.save(turn("r-n3"), notices=[notice("n3")])
    assert await one.deliveries() == []


@every_shared_store
async def test_a_change_of_status_queues_once_and_only_if_it_changes(one: Store, two: Store, clock: Clock) -> None:
    await one.save(turn("r-n1", status="in_progress"))
    cancelled = [two.update_status("r-n1", "cancelled", only_from=UNFINISHED, notices=[notice("n1", "r-n1")])]
    cancelled += [one.update_status("r-n1", "cancelled", only_from=UNFINISHED, notices=[notice("n2", "r-n1")])]
    assert sorted(await asyncio.gather(*cancelled)) == [False, True]
    assert not await one.update_status("nobody", "cancelled", notices=[notice("n3")])
    assert len(await one.deliveries()) == 1


@every_shared_store
async def test_a_receiver_is_told_of_a_response_once_and_each_of_several_gets_its_own(
    one: Store, two: Store, clock: Clock
) -> None:
    both = [notice("n1", "r"), notice("n2", "r", endpoint="other")]
    await one.save(turn("r"), notices=both)
    await one.save(turn("r"), notices=[notice("n3", "r"), notice("n4", "r", endpoint="other")])
    assert await take(one) == ["n1"]
    assert await take(two, endpoint="other") == ["n2"]


@every_shared_store
async def test_of_many_who_take_at_once_each_gets_others(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, *(notice(f"n{number}") for number in range(20)))
    takes = [take(store, 3, holder) for holder in ("a", "b") for store in (one, two) for _ in range(3)]
    taken = [id for some in await asyncio.gather(*takes) for id in some]
    assert sorted(taken) == sorted(f"n{number}" for number in range(20))


@every_shared_store
async def test_what_was_taken_is_due_again_when_nothing_is_heard_of_it(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1"))
    assert await take(one) == ["n1"]
    clock.at += 19.5
    assert await take(two, holder="b") == []
    assert await two.next_due("hook") == pytest.approx(0.5)
    clock.at += 0.5
    assert await two.next_due("hook") == 0
    assert await take(two, holder="b") == ["n1"]
    assert not await one.delivered("n1", holder="a"), "it is another one's now"
    assert not await one.put_off("n1", holder="a", seconds=0, reason="late")
    assert await two.delivered("n1", holder="b")
    assert await one.deliveries() == []


@every_shared_store
async def test_what_is_put_off_waits_and_says_why(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1"))
    await take(one)
    assert await one.put_off("n1", holder="a", seconds=30, reason="it is down")
    assert not await one.put_off("n1", holder="a", seconds=0, reason="again"), "it was given back"
    assert not await one.delivered("n1", holder="")
    assert await take(two) == []
    (waiting,) = await two.deliveries()
    assert (waiting.attempts, waiting.due, waiting.reason, waiting.given_up) == (1, 30, "it is down", False)
    clock.at += 30
    (again,) = await two.take_due("hook", holder="b", seconds=20, most=1)
    assert (again.attempts, again.age) == (2, 30)


@every_shared_store
async def test_the_longest_due_comes_first(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1"), notice("n2"))
    await take(one, 1)
    clock.at += 1
    await queue(one, notice("n3"))
    await one.put_off("n1", holder="a", seconds=0.5, reason="")
    clock.at += 1
    assert await take(two, 2) == ["n2", "n3"]
    assert await take(two, 2) == ["n1"]


@every_shared_store
async def test_what_is_given_up_stays_until_somebody_wants_it_sent_again(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1"), notice("n2"))
    await take(one, 1)
    assert await one.put_off("n1", holder="a", seconds=None, reason="410")
    assert await two.backlog("hook") == Backlog(waiting=1, given_up=1)
    assert await two.backlog("nobody") == Backlog(0, 0)
    clock.at += 1000
    assert [each.notice.id for each in await two.deliveries()] == ["n1", "n2"], "what needs a person stands first"
    assert await take(one) == ["n2"]
    assert await two.deliver_again() == 1
    (again,) = await one.take_due("hook", holder="a", seconds=20, most=5)
    assert (again.notice.id, again.attempts, again.age, again.given_up) == ("n1", 1, 0, False)


@every_shared_store
async def test_one_is_sent_again_or_forgotten_by_its_id_unless_it_is_under_way(
    one: Store, two: Store, clock: Clock
) -> None:
    await queue(one, notice("n1"), notice("n2"))
    await take(one, 1)
    assert await two.deliver_again("n1") == 0
    assert await two.forget_deliveries("n1") == 0
    await one.put_off("n1", holder="a", seconds=500, reason="down")
    assert await two.deliver_again("n1") == 1
    assert await two.deliver_again("nobody") == 0
    assert sorted(await take(one)) == ["n1", "n2"]
    clock.at += 20
    assert await two.forget_deliveries("n1") == 1, "nothing was heard of it any more"
    assert await take(one) == ["n2"]
    await one.put_off("n2", holder="a", seconds=None, reason="down")
    assert await two.forget_deliveries() == 1
    assert await one.deliveries() == []


@every_shared_store
async def test_one_too_many_is_given_up_at_once_and_so_many_of_those_are_kept(
    one: Store, two: Store, clock: Clock
) -> None:
    for number in range(7):
        clock.at += 1
        await queue(one, notice(f"n{number}", most=2))
    await queue(two, notice("m0", endpoint="other", most=2))
    assert await two.backlog("hook") == Backlog(waiting=2, given_up=2)
    assert await two.backlog("other") == Backlog(waiting=1, given_up=0)
    found = {each.notice.id: each for each in await two.deliveries()}
    assert list(found) == ["n5", "n6", "n0", "n1", "m0"]
    assert "webhooks.max_queued" in found["n6"].reason
    assert await take(one) == ["n0", "n1"]


@every_shared_store
async def test_tidying_forgets_what_was_given_up_long_ago(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1"), notice("n2"), notice("n3"))
    await take(one, 2)
    await one.put_off("n1", holder="a", seconds=None, reason="")
    clock.at += 60
    await one.put_off("n2", holder="a", seconds=None, reason="")
    clock.at += 50
    assert await two.tidy_outbox(known=frozenset({"hook"}), give_up=1, keep=100) == 1
    assert [each.notice.id for each in await one.deliveries()] == ["n2", "n3"]


@every_shared_store
async def test_tidying_gives_up_what_waits_for_a_receiver_that_is_gone(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1", endpoint="gone"), notice("n2", endpoint="held"), notice("n3"))
    clock.at += 99
    await queue(one, notice("n4", endpoint="gone"))
    clock.at += 1
    assert await take(one, endpoint="held") == ["n2"]
    assert await two.tidy_outbox(known=frozenset({"hook"}), give_up=100, keep=100) == 1
    (given_up, *rest) = await one.deliveries()
    assert (given_up.notice.id, given_up.given_up, given_up.due) == ("n1", True, 0)
    assert "no gateway has a receiver of this name" in given_up.reason
    assert {each.notice.id for each in rest} == {"n2", "n3", "n4"}


@every_shared_store
async def test_a_listing_is_bounded(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, *(notice(f"n{number}") for number in range(5)))
    assert len(await two.deliveries(most=3)) == 3


@every_shared_store
async def test_forgetting_responses_leaves_their_notices(one: Store, two: Store, clock: Clock) -> None:
    await queue(one, notice("n1"))
    await one.prune(older_than=1e12)
    assert await one.load("r-n1") is None
    assert await take(two) == ["n1"]
