"""Conversations are read as they were written, a page at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from isthmus.errors import StoreDamaged
from isthmus.ports import StoredConversation
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.conversation_rows import damage_of, find, find_unused
from isthmus.store.postgres.store import PostgresStore
from stored import message

Asked = Callable[[Callable[..., Awaitable[None]]], None]
ITEMS = [message(f"said {number}", f"i{number}") for number in range(5)]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE conversations SET next = 99", "its row is not as it was written"),
        ("UPDATE conversation_items SET ours = 1 WHERE position = 2", "its item `i2`"),
        ("UPDATE pieces SET data = '{}' WHERE item_id = 'i3'", "its item `i3`"),
        ("DELETE FROM conversation_items WHERE position = 4", "items are missing"),
    ],
)
def test_what_was_changed_behind_our_back_is_told_to_nobody(
    asked: Asked, connection: Connection, change: str, says: str
) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.start_conversation(StoredConversation("c", 1.0), ITEMS)
        connection.execute(change)
        with pytest.raises(StoreDamaged, match=says):
            await store.conversation_turns("c", most=100)
        assert [line async for line in store.export_conversations()] == []

    asked(ask)


def test_what_is_sound_and_unused_is_found(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.start_conversation(StoredConversation("c", 5.0), ITEMS)
        row = find(connection, "c", "local")
        assert row is not None
        assert damage_of(connection, row) is None
        assert find(connection, "c", "ann") is None
        assert find_unused(connection, 5.0, None) is None
        assert find_unused(connection, 6.0, None) == (row.key, "c")

    asked(ask)
