"""Forgetting while others save, one process at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from isthmus.ports import StoredConversation
from isthmus.store.postgres import prune as pruning
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.locks import PRUNING, lock
from isthmus.store.postgres.store import PostgresStore
from stored import message, turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]
HISTORY = (message("ask"), message("answer"))


def test_a_long_chain_goes_in_small_steps(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_STEP", 3)

    async def ask(store: PostgresStore) -> None:
        previous = None
        for number in range(10):
            await store.save(turn(f"r{number}", previous, at=float(number)))
            previous = f"r{number}"
        await store.save(turn("kept", at=1e9))
        assert (await store.prune(older_than=100.0)).responses == 10
        assert await store.load("kept") is not None
        assert (await store.stats()).responses == 1

    asked(ask)


def test_by_size_what_was_not_used_for_longest_goes_until_it_fits(asked: Asked) -> None:
    async def ask(store: PostgresStore) -> None:
        for number in range(8):
            await store.save(turn(f"r{number}", at=float(number), input=(message(f"{number}" * 1000),)))
        size = (await store.stats()).bytes
        pruned = await store.prune(max_bytes=size // 2)
        assert (await store.stats()).bytes <= size // 2
        assert 4 <= pruned.responses <= 5
        assert pruned.bytes > 0
        assert await store.load("r7") is not None
        assert await store.load("r0") is None

    asked(ask)


def test_replicas_that_prune_at_once_forget_each_turn_once(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        for number in range(30):
            await one.save(turn(f"r{number}", at=float(number)))
        pruned = await asyncio.gather(one.prune(older_than=20.0), two.prune(older_than=20.0))
        assert sum(each.responses for each in pruned) == 20
        assert (await one.stats()).responses == 10

    asked(ask)


def test_who_is_at_it_is_waited_for(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.save(turn("r", at=1.0))
        connection.execute("BEGIN")
        lock(connection, PRUNING)
        pruned = asyncio.create_task(store.prune(older_than=5.0))
        while connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone() == (0,):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await store.load("r") is not None
        connection.execute("COMMIT")
        assert (await pruned).responses == 1

    asked(ask)


def test_a_child_that_is_saved_while_its_parent_is_forgotten_keeps_what_was_said(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        for number in range(15):
            await one.save(turn(f"p{number}", at=1.0))
            await asyncio.gather(
                one.save(turn(f"c{number}", f"p{number}", at=9.0), history=lambda: HISTORY), two.prune(older_than=5.0)
            )
            turns = await one.chain(f"c{number}")
            assert len(turns) == 2 or turns[0].input[:2] == HISTORY

    asked(ask)


def test_a_conversation_in_which_a_turn_is_under_way_stays(asked: Asked) -> None:
    async def ask(store: PostgresStore) -> None:
        for id in ("old", "busy"):
            await store.start_conversation(StoredConversation(id, 1.0))
        await store.claim("conversation:busy", holder="a", seconds=1000)
        assert (await store.prune(conversations_older_than=5.0)).conversations == 1
        assert await store.conversation("busy") is not None

    asked(ask)
