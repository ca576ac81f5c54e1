from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Coroutine
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus.errors import ConfigError, RequestRefused, StoreDamaged
from isthmus.ports import EventBatch, StoredResponse
from isthmus.store.open import examine_store
from isthmus.store.sqlite.store import SqliteStore
from stored import message, turn

SHARED = message("said by both")


def with_store(path: Path, ask: Any) -> Any:
    async def run() -> Any:
        store = SqliteStore(path)
        try:
            return await ask(store)
        finally:
            await store.aclose()

    return asyncio.run(run())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three turns: `one` and `two` say the same, `three` goes on from `two` and has events."""

    async def fill(store: SqliteStore) -> None:
        await store.save(turn("one", input=(SHARED,), tools=["t" * 900]))
        await store.save(turn("two", input=(SHARED,)))
        await store.save(turn("three", "two"), events=EventBatch(0, (b'{"a":1}', b'{"b":2}')))

    path = tmp_path / "store.db"
    with_store(path, fill)
    return path


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)
    connection.close()


def load(path: Path, id: str) -> StoredResponse | None:
    async def ask(store: SqliteStore) -> StoredResponse | None:
        return await store.load(id)

    found: StoredResponse | None = with_store(path, ask)
    return found


def test_a_sound_store_is_called_so(path: Path) -> None:
    examined = examine_store(f"sqlite:{path}")
    assert (examined.responses, examined.damage, examined.sound) == (3, (), True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE responses SET skeleton = CAST(replace(skeleton, 'completed', 'complEted') AS BLOB) WHERE id = 'one'",
        "UPDATE responses SET status = 'failed' WHERE id = 'one'",
        "UPDATE responses SET model = CAST(x'ff' AS TEXT) WHERE id = 'one'",
        "UPDATE responses SET created_at = created_at + 1 WHERE id = 'one'",
        "UPDATE responses SET memo = x'00' WHERE id = 'one'",
        "DELETE FROM parts WHERE place = 2 AND response = (SELECT key FROM responses WHERE id = 'one')",
        "DELETE FROM parts WHERE place = 1 AND response = (SELECT key FROM responses WHERE id = 'one')",
        "UPDATE parts SET piece = (SELECT piece FROM parts AS p, responses AS r WHERE p.response = r.key"
        " AND r.id = 'two' AND p.place = 1) WHERE place = 1"
        " AND response = (SELECT key FROM responses WHERE id = 'one')",
        "UPDATE pieces SET data = data || ' ' WHERE item_id = 'msg_one'",
        "DELETE FROM pieces WHERE item_id = 'msg_one'",
    ],
)
def test_whatever_was_changed_is_found_told_and_set_aside(path: Path, statement: str) -> None:
    change(path, statement)
    with pytest.raises(StoreDamaged, match="one"):
        load(path, "one")
    examined = examine_store(f"sqlite:{path}")
    assert [(each.kind, each.id, each.set_aside) for each in examined.damage] == [("response", "one", False)]
    assert not examined.sound
    repaired = examine_store(f"sqlite:{path}", repair=True)
    assert [(each.id, each.set_aside) for each in repaired.damage] == [("one", True)]
    assert repaired.sound
    assert load(path, "one") is None
    assert load(path, "two") == turn("two", input=(SHARED,))
    assert examine_store(f"sqlite:{path}").damage == ()
    with closing(sqlite3.connect(path)) as connection:
        ((kind, id, content),) = connection.execute("SELECT kind, id, content FROM quarantine")
        assert (kind, id) == ("response", "one")
        kept = msgspec.json.decode(content)
        assert kept["response"][0]["id"] == "one"
        assert kept["pieces"] or "DELETE" in statement


def test_a_piece_that_two_share_damages_both_and_saving_it_again_mends_both(path: Path) -> None:
    change(path, "UPDATE pieces SET data = x'7b7d' WHERE item_id IS NULL AND data = ?", SHARED)
    assert {each.id for each in examine_store(f"sqlite:{path}").damage} == {"one", "two"}

    async def say_it_again(store: SqliteStore) -> None:
        with pytest.raises(StoreDamaged, match="`three` cannot be continued: its earlier turn `two`"):
            await store.chain("three")
        await store.save(turn("four", input=(SHARED,)))
        assert await store.load("four") == turn("four", input=(SHARED,))
        assert len(await store.chain("three")) == 2

    with_store(path, say_it_again)
    assert examine_store(f"sqlite:{path}").sound


def test_damaged_events_are_set_aside_and_the_response_stays(path: Path) -> None:
    change(path, "UPDATE events SET data = replace(data, '1', '7')")

    async def ask(store: SqliteStore) -> list[bytes]:
        return await store.events("three")

    with pytest.raises(StoreDamaged, match="`three` is damaged: its events 0 to 1"):
        with_store(path, ask)
    assert [each.kind for each in examine_store(f"sqlite:{path}", repair=True).damage] == ["events"]
    assert load(path, "three") == turn("three", "two")
    assert with_store(path, ask) == []


def test_what_is_damaged_keeps_nobody_else_from_being_exported_or_recovered(path: Path) -> None:
    async def fill(store: SqliteStore) -> None:
        for id in ("left", "lost"):
            await store.save(turn(id, status="in_progress"))

    with_store(path, fill)
    change(path, "UPDATE responses SET memo = x'00' WHERE id IN ('one', 'lost')")

    async def ask(store: SqliteStore) -> tuple[list[Any], list[str]]:
        lines = [msgspec.json.decode(line)["id"] async for line in store.export()]
        return lines, [record.id for record in await store.expired()]

    assert with_store(path, ask) == (["two", "three", "left"], ["left"])


def test_an_index_that_is_damaged_is_made_anew(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        sql = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'parts_by_piece'").fetchone()[0]
        connection.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = 'parts_by_piece'", (f"{sql} WHERE piece < 0",)
        )
        connection.execute("PRAGMA writable_schema = RESET")
        connection.execute("INSERT INTO parts SELECT response + 1000, place, position, piece FROM parts")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'parts_by_piece'", (sql,))
    assert "file" in {each.kind for each in examine_store(f"sqlite:{path}").damage}
    assert examine_store(f"sqlite:{path}", repair=True).sound
    assert examine_store(f"sqlite:{path}").damage == ()


def test_a_store_from_before_there_were_digests_is_checked_as_far_as_it_can_be(path: Path) -> None:
    change(path, "UPDATE responses SET turn_digest = NULL, row_digest = NULL")
    change(path, "UPDATE events SET digest = NULL")
    assert examine_store(f"sqlite:{path}").sound
    assert load(path, "one") == turn("one", input=(SHARED,), tools=["t" * 900])
    change(path, "UPDATE pieces SET data = x'7b7d' WHERE item_id = 'msg_two'")
    change(path, "UPDATE responses SET skeleton = x'7b22ff' WHERE id = 'one'")
    assert {each.id for each in examine_store(f"sqlite:{path}").damage} == {"one", "two"}


def test_there_must_be_a_store_to_examine(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no store at"):
        examine_store(f"sqlite:{tmp_path}/none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(ConfigError, match="nothing on disk"):
        examine_store("memory:")


@pytest.mark.parametrize("seed", range(25))
def test_bytes_flipped_anywhere_never_come_out_as_something_else(seed: int, tmp_path: Path) -> None:
    """Loaded, continued, listed: as it was written, or refused, or (where its id is damaged) not found."""
    path, chance = tmp_path / "store.db", random.Random(seed)
    records = {
        f"r{number}": turn(f"r{number}", f"r{number - 1}" if number % 5 else None, tools=["t" * 700], n="x" * number)
        for number in range(30)
    }

    async def fill(store: SqliteStore) -> None:
        for record in records.values():
            await store.save(record)

    with_store(path, fill)
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice((1, 5, 60))):
        content[chance.randrange(4096, len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)

    codes: set[str] = set()

    async def answer(work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await work
        except (ConfigError, RequestRefused) as error:
            codes.add(error.code)
            return None

    async def ask(store: SqliteStore) -> None:
        for id, record in records.items():
            assert await answer(store.load(id)) in (None, record)
            for each in await answer(store.chain(id)) or []:
                assert each.input == records[each.id].input
                assert msgspec.json.decode(each.output[0])["id"] == f"msg_{each.id}"
            page = await answer(store.list_input_items(id, limit=100))
            for item in page.items if page is not None else ():
                fields = msgspec.json.decode(item)
                text = fields["content"][0]["text"]
                assert text in {f"{word} r{number}" for word in ("ask", "answer") for number in range(30)}
                assert fields["id"].split("_")[1] == text.split()[1]

    with suppress(ConfigError):  # what begins with a damaged table of contents does not begin at all
        with_store(path, ask)
        examine_store(f"sqlite:{path}", repair=True)
        with_store(path, ask)
    refused = {"previous_response_not_found", "previous_response_chain_too_long"}  # a parent that is its own child
    assert codes <= {"store_damaged", "store_unavailable", *refused}
