"""What is so, found out once for everybody who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from isthmus.errors import ConfigError
from isthmus.server.readiness import OK, PATIENCE, Check, Found, Readiness
from own_time import clock, run_in_own_time, turns


def says(word: str | None) -> Check:
    async def check() -> str | None:
        return word

    return check


class Counted:
    """A check that is counted, and says what it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.word: str | None = None
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> str | None:
        self.asked += 1
        await self.may_answer.wait()
        return self.word


def in_own_time(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        clock().stop_clock()
        await test()

    run_in_own_time(run())


@pytest.mark.parametrize(
    ("store", "providers", "status"),
    [
        (OK, {"a": OK, "b": OK}, "ready"),
        (OK, {"a": OK, "b": "cannot be reached"}, "degraded"),
        (OK, {"a": "cannot be reached", "b": "it has no key"}, "not ready"),
        ("disk full", {"a": OK}, "not ready"),
        (OK, {"demo": OK}, "ready"),
        (OK, {"a": "cannot be reached", "demo": OK}, "not ready"),
        (OK, {"a": OK, "demo": "broken"}, "ready"),
    ],
)
def test_it_is_not_ready_when_nothing_can_be_served(store: str, providers: dict[str, str], status: str) -> None:
    assert Found(store, providers, 0.0).status == status


def test_however_many_ask_it_is_looked_at_once_per_interval() -> None:
    async def test() -> None:
        store, provider = Counted(), Counted()
        readiness = Readiness(store, {"a": provider}, interval=10)
        store.may_answer.clear()
        asking = [asyncio.create_task(readiness.ask()) for _ in range(40)]
        await turns()
        assert (store.asked, provider.asked) == (1, 1)
        store.may_answer.set()
        assert {found.status for found in await asyncio.gather(*asking)} == {"ready"}
        for _ in range(9):
            clock().skip(1)
            await readiness.ask()
        assert (store.asked, provider.asked) == (1, 1)
        clock().skip(1)
        await asyncio.gather(*(readiness.ask() for _ in range(40)))
        await turns()
        assert (store.asked, provider.asked) == (2, 2)

    in_own_time(test)


def test_who_asks_again_is_answered_at_once_and_sees_the_change_next_time() -> None:
    async def test() -> None:
        provider = Counted()
        readiness = Readiness(says(None), {"a": provider}, interval=10)
        await readiness.ask()
        clock().skip(11)
        provider.word = "cannot be reached"
        provider.may_answer.clear()
        assert (await readiness.ask()).status == "ready", "what was found last, without waiting"
        provider.may_answer.set()
        await turns()
        assert (await readiness.ask()).providers == {"a": "cannot be reached"}

    in_own_time(test)


def test_nobody_is_told_what_was_so_long_ago() -> None:
    async def test() -> None:
        provider = Counted()
        readiness = Readiness(says(None), {"a": provider}, interval=10)
        await readiness.ask()
        clock().skip(3600)
        provider.word = "cannot be reached"
        assert (await readiness.ask()).status == "not ready"

    in_own_time(test)


def test_nobody_asks_and_nothing_is_done() -> None:
    async def test() -> None:
        provider = Counted()
        Readiness(says(None), {"a": provider}, interval=10)
        clock().skip(3600)
        await turns()
        assert provider.asked == 0

    in_own_time(test)


def test_a_part_that_says_nothing_is_not_waited_for_long() -> None:
    async def test() -> None:
        provider = Counted()
        provider.may_answer.clear()
        asking = asyncio.create_task(Readiness(says(None), {"a": provider, "b": says(None)}).ask())
        await turns()
        clock().skip(PATIENCE)
        await turns()
        found = await asking
        assert found.status == "degraded"
        assert "5 s" in found.providers["a"]

    in_own_time(test)


def test_a_part_that_breaks_is_told_in_its_words() -> None:
    async def full() -> str | None:
        raise ConfigError("the disk is full", code="store_unavailable")

    async def bug() -> str | None:
        raise KeyError("x")

    async def test() -> None:
        found = await Readiness(full, {"a": bug}).ask()
        assert (found.store, found.providers["a"]) == ("the disk is full", "KeyError: 'x'")

    in_own_time(test)


def test_one_who_leaves_does_not_stop_the_look_for_the_others() -> None:
    async def test() -> None:
        provider = Counted()
        provider.may_answer.clear()
        readiness = Readiness(says(None), {"a": provider})
        first, second = (asyncio.create_task(readiness.ask()) for _ in range(2))
        await turns()
        first.cancel()
        await turns()
        provider.may_answer.set()
        assert (await second).status == "ready"

    in_own_time(test)


def test_a_look_ends_with_the_server() -> None:
    async def test() -> None:
        provider = Counted()
        provider.may_answer.clear()
        readiness = Readiness(says(None), {"a": provider})
        asking = asyncio.create_task(readiness.ask())
        await turns()
        await readiness.aclose()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await Readiness(says(None), {}).aclose()  # also where nobody ever asked

    in_own_time(test)


def test_what_the_store_knows_of_itself_is_told_at_once_and_its_end_is_seen_at_once() -> None:
    async def test() -> None:
        store, provider, glance = Counted(), Counted(), Counted()
        readiness = Readiness(store, {"a": provider}, glance=glance, interval=10.0)
        assert (await readiness.ask()).status == "ready"
        glance.word = "it was deleted"
        found = await readiness.ask()
        assert (found.status, found.store) == ("not ready", "it was deleted")
        assert (store.asked, provider.asked) == (1, 1), "nobody had to be asked for that"
        glance.word = None
        assert (await readiness.ask()).status == "ready"

        store.word = "locked"
        clock().skip(11)
        await readiness.ask()
        await turns()
        assert (await readiness.ask()).store == "locked"
        store.word = None
        assert (await readiness.ask()).status == "ready"
        await readiness.aclose()

    in_own_time(test)
