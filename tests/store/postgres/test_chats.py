"""Completions are listed by what they say of themselves, whatever that is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from isthmus.store.postgres.store import PostgresStore
from stored import turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]


def test_any_metadata_is_found_again(asked: Asked) -> None:
    strange = {'a "key"': "it's %s", "nul\0": "\0", "ü": "{}"}

    async def ask(store: PostgresStore) -> None:
        await store.save_chat(turn("one"), strange)
        await store.save_chat(turn("two"), {"plain": "1"})
        for name, value in strange.items():
            assert [each.id for each in (await store.list_chats(metadata={name: value})).chats] == ["one"]
        assert (await store.list_chats(metadata={"plain": "2"})).chats == ()
        assert await store.update_chat("two", {"plain": "2"}) is not None
        assert [each.id for each in (await store.list_chats(metadata={"plain": "2"})).chats] == ["two"]

    asked(ask)
