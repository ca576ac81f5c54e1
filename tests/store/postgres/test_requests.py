"""A name leads to what was made for it last."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isthmus.ports import NamedRequest
from isthmus.store.postgres.store import PostgresStore

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_many_names_at_once_forget_what_is_too_old(asked: Asked) -> None:
    async def ask(one: PostgresStore, two: PostgresStore) -> None:
        for number in range(10):
            await one.name_request(f"old{number}", NamedRequest(b"d", "r", 1.0))
        await asyncio.gather(
            *(
                (one, two)[at % 2].name_request(f"n{at}", NamedRequest(b"d", f"r{at}", 9.0), since=5.0)
                for at in range(10)
            )
        )
        assert await two.named_request("old1") is None
        assert await two.named_request("n3", since=9.0) == NamedRequest(b"d", "r3", 9.0)
        assert await two.named_request("n3", since=9.5) is None

    asked(ask)
