"""What is damaged is found and set aside, and the rest stays as it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from isthmus.ports import EventBatch, StoredConversation
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.examine import examine
from isthmus.store.postgres.store import PostgresStore
from keyed import deed, stored_key
from stored import message, turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]
ITEMS = [message(f"said {number}", f"i{number}") for number in range(3)]


async def fill(store: PostgresStore) -> None:
    for number in range(3):
        await store.save(turn(f"r{number}"), events=EventBatch(0, (b"1", b"2")))
    for id in ("whole", "mended", "gone"):
        await store.start_conversation(StoredConversation(id, 1.0), [message(f"in {id}", f"{id}_0"), *ITEMS])
    await store.add_key(stored_key("ann"), deed())
    await store.add_key(stored_key("eve"), deed())


def test_what_is_whole_is_sound(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await fill(store)
        found = examine(connection)
        assert (found.responses, found.conversations, found.damage, found.sound) == (3, 3, (), True)

    asked(ask)


def test_what_is_damaged_is_told_then_set_aside_and_then_it_is_sound(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await fill(store)
        for change in (
            "UPDATE responses SET model = 'other' WHERE id = 'r0'",
            "UPDATE events SET data = '[9]' WHERE response = (SELECT key FROM responses WHERE id = 'r1')",
            "UPDATE pieces SET data = '{}' WHERE item_id = 'mended_0'",
            "UPDATE conversations SET items = 9 WHERE id = 'gone'",
            "UPDATE keys SET seal = 'x' WHERE key = (SELECT max(key) FROM keys)",
        ):
            connection.execute(change)
        told = examine(connection)
        eve = stored_key("eve").id
        assert {(each.kind, each.id) for each in told.damage} == {
            *(("response", "r0"), ("events", "r1"), ("conversation", "mended"), ("conversation", "gone"), ("key", eve))
        }
        assert not told.sound
        assert connection.execute("SELECT count(*) FROM quarantine").fetchone() == (0,)
        mended = examine(connection, repair=True)
        assert mended.sound
        assert len(mended.damage) == 5
        assert examine(connection).damage == ()
        assert await store.load("r0") is None
        assert await store.load("r1") is not None
        assert await store.events("r1") == []
        page = await store.conversation_items("mended", limit=9)
        assert page is not None
        assert len(page.items) == 3
        assert await store.conversation("gone") is None
        assert [bool(key.revoked_at) for key in await store.keys()] == [False, True]
        kept = connection.execute("SELECT content FROM quarantine WHERE id = 'r0'").fetchone()
        assert kept is not None
        assert msgspec.json.decode(kept[0])["response"][0]["model"] == "other"

    asked(ask)
