"""What is handed out is what was written, by whoever may see it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from isthmus.errors import StoreDamaged
from isthmus.ports import EventBatch
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.reads import find_ends, find_streams, measure_bytes, weigh
from isthmus.store.postgres.store import PostgresStore
from isthmus.store.postgres.writes import find_key
from postgres import server
from stored import message, turn

Asked = Callable[[Callable[..., Awaitable[None]]], None]
LONG = "x" * 3000


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("UPDATE responses SET status = 'failed'", "not the turn that was written"),
        ("UPDATE responses SET created_at = 7", "its row is not as it was written"),
        ("UPDATE responses SET skeleton = 'x'", "its row is not as it was written"),
        ("UPDATE pieces SET data = '{}' WHERE item_id IS NULL", "its input item 0 is not as it was written"),
        ("UPDATE pieces SET data = 'x' WHERE item_id IS NOT NULL", "its output item 0 is not as it was written"),
        ("DELETE FROM parts WHERE place = 1", "not the turn that was written"),
    ],
)
def test_what_was_changed_behind_our_back_is_told_to_nobody(
    asked: Asked, connection: Connection, change: str, says: str
) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.save(turn("one"))
        connection.execute(change)
        with pytest.raises(StoreDamaged, match=says) as refused:
            await store.load("one")
        assert refused.value.metadata == {"id": "one"}
        assert [line async for line in store.export()] == []

    asked(ask)


def test_changed_events_are_told_to_nobody(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.save(turn("one"), events=EventBatch(0, (b"1", b"2")))
        connection.execute("UPDATE events SET data = '[1,3]'")
        with pytest.raises(StoreDamaged, match="its events 0 to 1"):
            await store.events("one")

    asked(ask)


def test_an_id_that_postgres_has_no_place_for_is_found_again(asked: Asked) -> None:
    strange = "a\0b" + "ü" * 2000

    async def ask(store: PostgresStore) -> None:
        await store.save(turn("one", input=(message("hi", strange), message("ho", "plain"))))
        assert list(await store.items([strange, "plain", "a\0c"])) == [strange.replace("\0", "\ufffd"), "plain"]
        page = await store.list_input_items("one", order="asc")
        assert page is not None
        assert len(page.items) == 2
        assert await store.load("one" * 2000) is None

    asked(ask)


def test_what_goes_with_a_response_is_weighed_before(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.save(turn("kept", input=(message(LONG),)))
        before = measure_bytes(connection)
        await store.save(turn("goes", input=(message(LONG),)), events=EventBatch(0, (b'"e"',)))
        key = find_key(connection, "goes", "local")
        assert key is not None
        assert weigh(connection, key) == measure_bytes(connection) - before

    asked(ask)


def test_ends_are_turns_that_are_over_and_that_nothing_builds_on(asked: Asked, connection: Connection) -> None:
    async def ask(store: PostgresStore) -> None:
        await store.save(turn("root", at=1.0))
        await store.save(turn("end", "root", at=2.0), events=EventBatch(0, (b"1",)))
        await store.save(turn("open", "root", at=3.0, status="in_progress"))
        assert [at for at, _ in find_ends(connection, (-1.0, 0), None, 10)] == [2.0]
        assert find_ends(connection, (-1.0, 0), 2.0, 10) == []
        assert len(find_streams(connection, 0, 3.0, 10)) == 1
        assert find_streams(connection, 0, 2.0, 10) == []

    asked(ask)


def test_a_page_that_the_server_has_lost_is_damage_of_what_is_on_it(asked: Asked) -> None:
    assert server().execute("SHOW data_checksums") == [("on",)], "the server itself compares what it reads"
