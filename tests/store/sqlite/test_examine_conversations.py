"""Damaged conversations are found, and what is damaged of them is set aside."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.ports import StoredConversation
from isthmus.store.open import examine_store
from isthmus.store.sqlite.store import SqliteStore
from stored import message, texts


@pytest.fixture
def path(tmp_path: Path) -> Path:
    async def fill() -> None:
        store = SqliteStore(tmp_path / "store.db")
        for id in ("conv_1", "conv_2"):
            items = [message(f"{id} {number}", f"{id}_{number}") for number in range(3)]
            await store.start_conversation(StoredConversation(id, 0.0), items)
        await store.aclose()

    asyncio.run(fill())
    return tmp_path / "store.db"


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def said(path: Path, id: str) -> list[str] | None:
    async def ask() -> list[str] | None:
        store = SqliteStore(path)
        try:
            found = await store.conversation_turns(id, most=100)
            return None if found is None else texts(tuple(item for item, _ in found.items))
        finally:
            await store.aclose()

    return asyncio.run(ask())


def test_sound_ones_are_counted(path: Path) -> None:
    examined = examine_store(f"sqlite:{path}")
    assert (examined.conversations, examined.damage, examined.sound) == (2, (), True)


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("UPDATE pieces SET data = x'7b7d' WHERE item_id = 'conv_1_1'", ["conv_1 0", "conv_1 2"]),
        ("DELETE FROM pieces WHERE item_id = 'conv_1_1'", ["conv_1 0", "conv_1 2"]),
        ("DELETE FROM conversation_items WHERE item_id = 'conv_1_1'", ["conv_1 0", "conv_1 2"]),
        ("UPDATE conversation_items SET ours = 1 WHERE item_id = 'conv_1_1'", ["conv_1 0", "conv_1 2"]),
        ("UPDATE conversations SET metadata = x'5b5d' WHERE id = 'conv_1'", None),
        ("UPDATE conversations SET next = 1 WHERE id = 'conv_1'", None),
    ],
)
def test_damage_is_named_and_set_aside(path: Path, statement: str, left: list[str] | None) -> None:
    change(path, statement)
    found = examine_store(f"sqlite:{path}")
    assert [(each.kind, each.id, each.set_aside) for each in found.damage] == [("conversation", "conv_1", False)]
    assert not found.sound
    repaired = examine_store(f"sqlite:{path}", repair=True)
    assert [(each.kind, each.set_aside) for each in repaired.damage] == [("conversation", True)]
    assert repaired.sound
    assert examine_store(f"sqlite:{path}").damage == ()
    assert said(path, "conv_1") == left
    assert said(path, "conv_2") == ["conv_2 0", "conv_2 1", "conv_2 2"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM quarantine").fetchone() == (1,)
