"""Notices find their receivers: when, how often, how many at a time, and what is told of those that do not."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.world import open_inline
from isthmus.errors import StoreUnavailable
from isthmus.gateway.announce import Announcer
from isthmus.gateway.deliver import Deliveries, DeliveryRule
from isthmus.ports import Delivery, Notice, Refused, Store
from own_time import OwnTime
from stored import turn

RULE = DeliveryRule(timeout=10, at_once=3, first_wait=4, longest_wait=64, give_up=1000, keep=5000)


class Receiver:
    """A messenger whose answers the test gives."""

    def __init__(self) -> None:
        self.got: list[tuple[float, str]] = []
        self.open: list[asyncio.Future[Refused | None]] = []
        self.answers: Callable[[Notice], Refused | None] | None = lambda notice: None
        """`None`: by hand, through `open`."""
        self.closed = False
        self.most = 0

    async def send(self, notice: Notice) -> Refused | None:
        loop = asyncio.get_running_loop()
        self.got.append((loop.time(), notice.id))
        if self.answers is not None:
            return self.answers(notice)
        mine: asyncio.Future[Refused | None] = loop.create_future()
        self.open.append(mine)
        self.most = max(self.most, len(self.open))
        try:
            return await mine
        finally:
            self.open.remove(mine)

    async def aclose(self) -> None:
        self.closed = True

    @property
    def ids(self) -> list[str]:
        return [id for _, id in self.got]


class House(OwnTime):
    """Gateways with couriers on one store, in their own time. `chance` is the middle of it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.store: Any = open_inline(kind, self.loop.time)
        self.count = 0

    def begin(self, rule: DeliveryRule = RULE, store: Any = None, **receivers: Receiver) -> Deliveries:
        async def make() -> Deliveries:
            self.count += 1
            announcer = Announcer(dict.fromkeys(receivers, frozenset()))
            holder = f"gw{self.count}"
            made = Deliveries(store or self.store, receivers, announcer, holder=holder, rule=rule, chance=lambda: 0.5)
            made.start()
            return made

        deliveries: Deliveries = self.run(make())
        self.quiet()
        return deliveries

    def queue(self, *ids: str, endpoint: str = "hook") -> None:
        for id in ids:
            notice = Notice(id, endpoint, "response.completed", f"r-{id}", b"{}")
            self.run(self.store.save(turn(f"r-{id}"), notices=[notice]))

    def end(self, *gateways: Deliveries) -> None:
        for gateway in gateways:
            self.run(gateway.aclose())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    made = House(request.param)
    yield made
    made.close()
    if hasattr(made.store, "close"):
        made.store.close()


def failing(notice: Notice) -> Refused:
    return Refused("it is down")


def test_what_is_queued_here_goes_at_once_and_is_forgotten(house: House) -> None:
    hook = Receiver()
    gateway = house.begin(hook=hook)
    house.queue("n1", "n2")
    gateway.wake()
    house.quiet()
    assert hook.ids == ["n1", "n2"]
    assert house.run(house.store.deliveries()) == []
    house.flow(100)
    assert hook.ids == ["n1", "n2"]
    house.end(gateway)
    assert hook.closed


def test_what_another_one_left_behind_is_found_within_seconds(house: House) -> None:
    hook = Receiver()
    gateway = house.begin(hook=hook)
    house.queue("n1")
    house.flow(5)
    assert hook.ids == ["n1"]
    house.end(gateway)


def test_what_fails_waits_twice_as_long_each_time_and_keeps_its_id(house: House) -> None:
    hook = Receiver()
    hook.answers = failing
    house.queue("n1")
    gateway = house.begin(hook=hook)
    house.flow(400)
    times = [at for at, _ in hook.got]
    waits = [round(later - earlier, 3) for earlier, later in itertools.pairwise(times)]
    # By chance, three quarters of it.
    assert waits[:7] == [3.0, 6.0, 12.0, 24.0, 48.0, 48.0, 48.0]
    assert set(hook.ids) == {"n1"}
    hook.answers = lambda notice: None
    house.flow(100)
    assert house.run(house.store.deliveries()) == []
    house.end(gateway)


def test_it_is_given_up_after_its_time_with_one_last_attempt(house: House, caplog: pytest.LogCaptureFixture) -> None:
    hook = Receiver()
    hook.answers = failing
    house.queue("n1")
    gateway = house.begin(hook=hook)
    with caplog.at_level(logging.ERROR, "isthmus.webhooks"):
        house.flow(3000)
    assert hook.got[-1][0] - hook.got[0][0] == pytest.approx(RULE.give_up)
    (left,) = house.run(house.store.deliveries())
    assert (left.given_up, left.reason) == (True, "it is down")
    assert gateway.words() == {"hook": "given up: 1; see `isthmus webhooks list`"}
    (told,) = [record.getMessage() for record in caplog.records if "webhook.given_up" in record.getMessage()]
    assert "endpoint=hook id=n1 type=response.completed response=r-n1" in told
    # What somebody wants sent again is tried again, as if it were new.
    count = len(hook.got)
    hook.answers = lambda notice: None
    house.run(house.store.deliver_again("n1"))
    house.flow(61)
    assert hook.ids[count:] == ["n1"]
    assert gateway.words() == {"hook": None}
    house.end(gateway)


def test_who_wants_no_more_of_it_is_not_asked_again(house: House) -> None:
    hook = Receiver()
    hook.answers = lambda notice: Refused("it answered HTTP 410", final=True)
    house.queue("n1")
    gateway = house.begin(hook=hook)
    house.flow(500)
    assert hook.ids == ["n1"]
    (left,) = house.run(house.store.deliveries())
    assert (left.given_up, left.reason) == (True, "it answered HTTP 410")
    house.end(gateway)


def test_whoever_says_when_is_asked_then_within_reason(house: House) -> None:
    hook = Receiver()
    hook.answers = lambda notice: Refused("it answered HTTP 503", wait=30)
    house.queue("n1")
    gateway = house.begin(hook=hook)
    house.flow(29)
    assert len(hook.got) == 1
    house.flow(2)
    assert len(hook.got) == 2
    hook.answers = lambda notice: Refused("it answered HTTP 503", wait=1e9)
    house.flow(30)
    before = len(hook.got)
    house.flow(RULE.longest_wait)
    assert len(hook.got) == before + 1
    house.end(gateway)


def test_a_receiver_that_says_nothing_has_its_time_and_no_more(house: House) -> None:
    hook = Receiver()
    hook.answers = None
    house.queue("n1")
    gateway = house.begin(hook=hook)
    house.flow(9.9)
    assert len(hook.open) == 1
    house.flow(0.2)
    assert hook.open == []
    (waiting,) = house.run(house.store.deliveries())
    assert waiting.reason == "it did not answer within 10 s"
    house.end(gateway)


def test_a_bug_in_sending_is_put_off_like_any_failure(house: House, caplog: pytest.LogCaptureFixture) -> None:
    hook = Receiver()

    def broken(notice: Notice) -> None:
        raise RuntimeError("a bug")

    hook.answers = broken
    house.queue("n1")
    with caplog.at_level(logging.ERROR, "isthmus.webhooks"):
        gateway = house.begin(hook=hook)
        house.flow(RULE.give_up * 2)
    assert any("webhook.broken" in record.getMessage() for record in caplog.records)
    (left,) = house.run(house.store.deliveries())
    assert (left.given_up, left.reason) == (True, "it could not be sent: RuntimeError")
    house.end(gateway)


def test_so_many_at_once_and_one_while_it_fails(house: House) -> None:
    hook = Receiver()
    hook.answers = None
    house.queue(*(f"n{number}" for number in range(8)))
    gateway = house.begin(hook=hook)
    house.quiet()
    assert len(hook.open) == 3
    hook.open[0].set_result(None)
    house.quiet()
    assert len(hook.open) == 3, "the next one has its place"
    for each in list(hook.open):
        each.set_result(Refused("it is down"))
    house.quiet()
    assert len(hook.open) == 1
    assert gateway.words()["hook"] == "waiting: 7; the last delivery failed: it is down"
    hook.open[0].set_result(None)
    house.quiet()
    assert len(hook.open) == 3, "it is well again"
    hook.answers = lambda notice: None
    for each in list(hook.open):
        each.set_result(None)
    house.flow(60)
    assert sorted(set(hook.ids)) == [f"n{number}" for number in range(8)]
    assert house.run(house.store.deliveries()) == []
    house.end(gateway)


def test_one_receiver_that_hangs_holds_up_no_other(house: House) -> None:
    slow, quick = Receiver(), Receiver()
    slow.answers = None
    house.queue(*(f"s{number}" for number in range(9)), endpoint="slow")
    house.queue("q1", endpoint="quick")
    gateway = house.begin(slow=slow, quick=quick)
    house.quiet()
    assert (len(slow.open), quick.ids) == (3, ["q1"])
    house.end(gateway)


def test_several_gateways_never_send_the_same_at_the_same_time(house: House) -> None:
    hook = Receiver()
    hook.answers = None
    ids = [f"n{number}" for number in range(6)]
    house.queue(*ids)
    gateways = [house.begin(hook=hook) for _ in range(3)]
    house.quiet()
    assert sorted(hook.ids) == ids, "each of them once, by three who have three places each"
    for each in list(hook.open):
        each.set_result(None)
    house.flow(60)
    assert sorted(hook.ids) == ids
    house.end(*gateways)


def test_what_a_gateway_held_when_it_died_is_delivered_by_another(house: House) -> None:
    dead, living = Receiver(), Receiver()
    dead.answers = None
    house.queue("n1")
    one = house.begin(hook=dead)
    for task in (*one._tasks, *one._couriers[0]._under_way):
        task.cancel()  # and nothing is given back
    house.quiet()
    two = house.begin(hook=living)
    house.flow(RULE.timeout)
    assert living.ids == [], "the first one might still be at it"
    house.flow(20)
    assert living.ids == ["n1"]
    house.end(two)


def test_at_the_end_what_is_due_is_delivered_and_what_is_under_way_waited_for(house: House) -> None:
    hook = Receiver()
    hook.answers = None
    house.queue("n1", "n2", "n3", "n4")
    gateway = house.begin(hook=hook)
    settling = house.launch(gateway.settle(5))
    for _ in range(4):
        assert not settling.done()
        hook.open[0].set_result(None)
        house.flow(0.1)
    assert settling.done()
    house.end(gateway)
    assert house.run(house.store.deliveries()) == []


def test_at_the_end_nobody_waits_for_long_and_the_rest_is_given_back(house: House) -> None:
    hook, later = Receiver(), Receiver()
    hook.answers = None
    house.queue("n1", "n2", "n3", "n4")
    gateway = house.begin(hook=hook)
    settling = house.launch(gateway.settle(5))
    house.flow(4.9)
    assert not settling.done()
    house.flow(0.2)
    assert settling.done()
    house.end(gateway)
    assert hook.closed
    assert {each.due <= 0 for each in house.run(house.store.deliveries())} == {True}, "due now, for the next one"
    following = house.begin(hook=later)
    house.quiet()
    assert sorted(later.ids) == ["n1", "n2", "n3", "n4"]
    house.end(following)


class Out:
    """A store that is out of order for a while."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.out = True

    def __getattr__(self, name: str) -> Any:
        async def call(*given: Any, **named: Any) -> Any:
            if self.out:
                raise StoreUnavailable("the disk is full")
            return await getattr(self._store, name)(*given, **named)

        return call


def test_a_store_that_is_out_of_order_is_asked_again(house: House, caplog: pytest.LogCaptureFixture) -> None:
    hook, out = Receiver(), Out(house.store)
    house.queue("n1")
    with caplog.at_level(logging.ERROR, "isthmus.webhooks"):
        gateway = house.begin(store=out, hook=hook)
        house.flow(12)
    assert any("webhook.broken" in record.getMessage() for record in caplog.records)
    out.out = False
    house.flow(6)
    assert hook.ids == ["n1"]
    house.end(gateway)


def test_an_end_that_cannot_be_noted_is_told_again(house: House) -> None:
    """At least once: a receiver knows by the id that it has it already."""
    hook, out = Receiver(), Out(house.store)
    out.out = False

    def take(notice: Notice) -> None:
        out.out = len(hook.got) == 1

    hook.answers = take
    house.queue("n1")
    gateway = house.begin(store=out, hook=hook)
    house.quiet()
    out.out = False
    house.flow(RULE.timeout + 30)
    assert hook.ids == ["n1", "n1"]
    assert house.run(house.store.deliveries()) == []
    house.end(gateway)


def test_what_waits_for_a_receiver_that_is_gone_is_given_up_and_forgotten(house: House) -> None:
    hook = Receiver()
    house.queue("n1", endpoint="gone")
    gateway = house.begin(hook=hook)
    house.flow(RULE.give_up + 60)
    (left,) = house.run(house.store.deliveries())
    assert left.given_up
    house.flow(RULE.keep + 60)
    assert house.run(house.store.deliveries()) == []
    assert hook.got == []
    house.end(gateway)


# ── the waits, as a law ────────────────────────────────────────────────────────────────────────────────

_notice = Notice("n", "hook", "response.completed", "r", b"{}")
rules = st.builds(
    DeliveryRule,
    first_wait=st.floats(0.001, 1000),
    longest_wait=st.floats(0.001, 1e5),
    give_up=st.floats(0.001, 1e6),
)
deliveries = st.builds(
    Delivery,
    notice=st.just(_notice),
    attempts=st.integers(1, 10_000),
    age=st.floats(0, 2e6),
    due=st.just(0.0),
)


@given(rules, deliveries, st.floats(0, 1e9), st.floats(0, 1, exclude_max=True))
def test_a_wait_has_its_bounds(rule: DeliveryRule, delivery: Delivery, asked: float, chance: float) -> None:
    wait = rule.wait(delivery, Refused("down", wait=asked), chance)
    left = rule.give_up - delivery.age
    if left <= 0:
        assert wait is None
        return
    assert wait is not None
    assert 0 <= wait <= min(left, rule.longest_wait)
    assert wait >= min(left, rule.longest_wait / 2, rule.first_wait / 2)
    assert rule.wait(delivery, Refused("gone", final=True), chance) is None


@given(rules, deliveries)
def test_chance_takes_up_to_half_of_it_away(rule: DeliveryRule, delivery: Delivery) -> None:
    refused = Refused("down")
    longest, shortest = rule.wait(delivery, refused, 0.999999), rule.wait(delivery, refused, 0.0)
    if longest is not None and shortest is not None and longest < rule.give_up - delivery.age:
        assert shortest == pytest.approx(longest / 2, rel=1e-3)
