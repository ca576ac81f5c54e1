"""A request under its name: one at a time, in every process, and only for its owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from every_store import Clock
from isthmus.errors import RequestRefused, StoreUnavailable
from isthmus.gateway.caller import LOCAL, Caller
from isthmus.gateway.locks import Locks
from isthmus.gateway.named import Named
from isthmus.store.memory import MemoryStore
from own_time import clock as own_clock
from own_time import run_in_own_time, turns
from stored import turn


@asynccontextmanager
async def house(keep: float = 100.0, lease: float = 30.0) -> AsyncIterator[tuple[MemoryStore, Clock, Named, Named]]:
    clock = Clock()
    store = MemoryStore(now=clock)
    locks = [Locks(store, holder, lease=lease, under_way=lambda *_: False) for holder in ("one", "two")]
    yield store, clock, *(Named(store, each, keep=keep, now=clock) for each in locks)
    for each in locks:
        await each.aclose()


async def make(named: Named, store: MemoryStore, *, status: str = "completed", caller: Caller = LOCAL) -> None:
    async with named.at(caller, "k", b"d") as naming:
        assert naming.found is None
        await naming.makes("r1")
        await store.save(turn("r1", status=status, owner=caller.owner))


def asked(question: Any) -> None:
    run_in_own_time(question())


@pytest.mark.parametrize(("status", "given"), [("completed", "r1"), ("incomplete", "r1"), ("failed", None)])
def test_what_ended_well_is_given_back(status: str, given: str | None) -> None:
    async def ask() -> None:
        async with house() as (store, _, one, two):
            await make(one, store, status=status)
            for named in (one, two):
                async with named.at(LOCAL, "k", b"d") as naming:
                    assert (naming.found and naming.found.id) == given

    asked(ask)


def test_nobody_else_is_at_it_here_or_in_another_process() -> None:
    async def ask() -> None:
        async with house() as (_, _, one, two), one.at(LOCAL, "k", b"d"):
            for named in (one, two):
                with pytest.raises(RequestRefused) as refused:
                    async with named.at(LOCAL, "k", b"d"):
                        pass
                assert refused.value.code == "idempotency_key_in_use"
            async with two.at(Caller("ann"), "k", b"d") as hers, two.at(LOCAL, "other", b"d") as another:
                assert (hers.found, another.found) == (None, None)

    asked(ask)


def test_it_is_held_for_as_long_as_it_takes_and_given_back_whatever_happens() -> None:
    async def ask() -> None:
        async with house(lease=3.0) as (_, clock, one, two):
            with pytest.raises(ZeroDivisionError):
                async with one.at(LOCAL, "k", b"d"):
                    for _ in range(20):
                        clock.at += 1.0
                        own_clock().skip(1.0)
                        await turns()
                    with pytest.raises(RequestRefused):
                        async with two.at(LOCAL, "k", b"d"):
                            pass
                    raise ZeroDivisionError
            async with two.at(LOCAL, "k", b"d") as naming:
                assert naming.found is None

    asked(ask)


def test_a_process_that_died_is_not_waited_for_longer_than_its_lease() -> None:
    async def ask() -> None:
        async with house() as (store, clock, _, two):
            assert await store.claim("request:k", holder="dead", seconds=30.0)
            with pytest.raises(RequestRefused):
                async with two.at(LOCAL, "k", b"d"):
                    pass
            clock.at += 31.0
            async with two.at(LOCAL, "k", b"d") as naming:
                assert naming.found is None

    asked(ask)


def test_another_request_of_that_name_is_refused_until_the_name_is_forgotten() -> None:
    async def ask() -> None:
        async with house() as (store, clock, one, two):
            await make(one, store)
            with pytest.raises(RequestRefused) as refused:
                async with two.at(LOCAL, "k", b"other"):
                    pass
            assert refused.value.code == "idempotency_key_reused"
            clock.at += 101.0
            async with two.at(LOCAL, "k", b"other") as naming:
                assert naming.found is None

    asked(ask)


def test_a_lease_that_cannot_be_had_is_not_believed_to_be_held() -> None:
    async def ask() -> None:
        async with house() as (store, _, one, _):
            claim = store.claim

            async def broken(*_: Any, **__: Any) -> bool:
                raise StoreUnavailable("gone")

            store.claim = broken  # type: ignore[method-assign]
            with pytest.raises(StoreUnavailable):
                async with one.at(LOCAL, "k", b"d"):
                    pass
            store.claim = claim  # type: ignore[method-assign]
            async with one.at(LOCAL, "k", b"d") as naming:
                assert naming.found is None

    asked(ask)
