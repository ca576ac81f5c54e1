"""Couriers of many processes take from one queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import psycopg
import pytest

from isthmus.ports import Notice
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.store import PostgresStore
from stored import turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_who_takes_passes_over_what_another_one_is_taking(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        for number in range(4):
            notice = Notice(f"n{number}", "hook", "response.completed", f"r{number}", b"{}")
            await store.save(turn(f"r{number}"), notices=[notice])
        with connection.transaction():
            connection.execute("SELECT 1 FROM outbox ORDER BY due_at, key LIMIT 2 FOR UPDATE")
            async with asyncio.timeout(30):
                taken = await store.take_due("hook", holder="a", seconds=60, most=3)
        assert [each.notice.id for each in taken] == ["n2", "n3"]
        assert [each.notice.id for each in await store.take_due("hook", holder="b", seconds=60, most=9)] == ["n0", "n1"]

    asked(ask)


def test_a_notice_is_there_with_its_response_or_not_at_all(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        connection.execute("ALTER TABLE outbox ADD CONSTRAINT never CHECK (about <> 'r')")
        try:
            with pytest.raises(psycopg.errors.CheckViolation):
                await store.save(turn("r"), notices=[Notice("n", "hook", "response.completed", "r", b"{}")])
        finally:
            connection.execute("ALTER TABLE outbox DROP CONSTRAINT never")
        assert await store.load("r") is None

    asked(ask)
