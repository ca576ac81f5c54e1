"""Money is set aside by many processes, and never more than there is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.ports.spending import Hold, Use
from isthmus.store.postgres.store import PostgresStore

Asked = Callable[[Callable[..., Awaitable[None]]], None]
USE = Use("2026-11-17", "ann", "k", "", "main", "m", requests=1, nanos=10)


def test_replicas_together_never_set_aside_more_than_the_budget(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        hold = [Hold("key:k", "2026-11-01", 10, 100), Hold("team:t", "2026-11-01", 10, 100)]
        held = await asyncio.gather(*((one, two)[at % 2].hold(f"r{at}", hold, seconds=60) for at in range(30)))
        assert sum(each is None for each in held) == 10
        assert await one.held("key:k") == await two.held("team:t") == 100

    asked(ask)


def test_what_is_settled_while_others_hold_is_never_missing_from_the_sum(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        hold = [Hold("key:k", "2026-11-01", 10, 10)]
        assert await one.hold("first", hold, seconds=60) is None
        tries = [two.hold(f"r{at}", hold, seconds=60) for at in range(20)]
        *refused, _ = await asyncio.gather(*tries, one.settle("first", [USE]))
        assert all(each is not None and each.used + each.held == 10 for each in refused)

    asked(ask)


def test_sums_of_many_are_exact(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        other = Use("2026-11-17", "ann", "k", "", "main", "n", requests=1, nanos=1)
        await asyncio.gather(
            *((one, two)[at % 2].note_uses([USE, other] if at % 3 else [other, USE]) for at in range(20)),
            *(one.settle("same", [USE]) for _ in range(3)),
        )
        found = await one.uses(since="2026-11-17", until="2026-11-17", by=("model",))
        assert [(each.model, each.requests, each.nanos) for each in found] == [("m", 21, 210), ("n", 20, 20)]

    asked(ask)
