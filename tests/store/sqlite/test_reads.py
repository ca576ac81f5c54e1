"""What is asked of the file, query by query: of one owner, in order, and never by looking at everything."""

from __future__ import annotations

import asyncio
import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from every_store import Clock
from isthmus.errors import RequestRefused
from isthmus.ports import LOCAL
from isthmus.store.sqlite.leases import claim
from isthmus.store.sqlite.reads import (
    find_ends,
    find_items,
    list_input_items,
    load_after,
    load_chain,
    load_expired,
    load_response,
    measure,
    measure_bytes,
)
from isthmus.store.sqlite.store import SqliteStore
from isthmus.store.sqlite.writes import delete_response, save_response
from stored import ids, message, texts, turn


def save(connection: sqlite3.Connection, *given: Any, **fields: Any) -> int:
    key = save_response(connection, turn(*given, **fields))
    assert key is not None
    return key


def chain(connection: sqlite3.Connection, length: int) -> None:
    for number in range(1, length + 1):
        save(connection, f"r{number}", f"r{number - 1}" if number > 1 else None)


def test_a_record_comes_back_with_every_column(connection: sqlite3.Connection) -> None:
    record = replace(
        turn("r1", "r0", at=12.5, status="in_progress", owner="ann", tools=["t" * 3000], instructions="i" * 600),
        conversation="conv_1",
        memo=b"\x00memo",
    )
    save_response(connection, record)
    assert load_response(connection, "r1", "ann") == record
    assert load_response(connection, "r1", "local") is None
    delete_response(connection, "r1", "ann")
    assert load_response(connection, "r1", "ann") is None


def test_orphans_are_unfinished_and_held_by_nobody_the_oldest_first(connection: sqlite3.Connection) -> None:
    now = Clock()
    for id, status in (
        ("r3", "queued"),
        ("r1", "in_progress"),
        ("r2", "completed"),
        ("held", "queued"),
        ("gone", "queued"),
    ):
        save(connection, id, status=status, owner="ann")
    delete_response(connection, "gone", "ann")
    claim(connection, "ann", "run:held", "a", 10, now)
    claim(connection, "bob", "run:r1", "a", 10, now)
    assert [record.id for record in load_expired(connection, 0, 9, now)[1][0]] == ["r3", "r1"]
    now.at += 10
    assert [record.id for record in load_expired(connection, 0, 9, now)[1][0]] == ["r3", "r1", "held"]
    behind, (found, _) = load_expired(connection, 0, 2, now)
    assert [record.id for record in found] == ["r3", "r1"]
    end, (found, _) = load_expired(connection, behind, 2, now)
    assert [record.id for record in found] == ["held"]
    assert load_expired(connection, end, 2, now) == (end, ([], {}))
    connection.execute("UPDATE responses SET memo = x'00' WHERE id = 'r1'")
    _, (found, broken) = load_expired(connection, 0, 9, now)
    assert ([record.id for record in found], list(broken)) == (["r3", "held"], ["r1"])


def test_an_export_goes_on_behind_the_last_key(connection: sqlite3.Connection) -> None:
    chain(connection, 5)
    delete_response(connection, "r3", LOCAL)
    seen: list[str] = []
    key, (page, _) = load_after(connection, 0, 2)
    while page:
        seen += [record.id for record in page]
        key, (page, _) = load_after(connection, key, 2)
    assert seen == ["r1", "r2", "r4", "r5"]
    assert load_after(connection, 5, 2) == (5, ([], {}))


@pytest.mark.parametrize(
    ("asked", "depth", "code", "says"),
    [
        ("r4", 4, None, ""),
        ("r4", 3, "previous_response_chain_too_long", "over 3 turns"),
        ("nobody", 9, "previous_response_not_found", "`nobody` was not found"),
        ("orphan", 9, "previous_response_not_found", "`never` was not found"),
        ("behind", 9, "previous_response_not_found", "`deleted` was not found"),
        ("foreign", 9, "previous_response_not_found", "`of_ann` was not found"),
    ],
)
def test_a_chain_is_whole_or_refused(
    connection: sqlite3.Connection, asked: str, depth: int, code: str | None, says: str
) -> None:
    chain(connection, 4)
    save(connection, "orphan", "never")
    save(connection, "deleted", "r4")
    save(connection, "behind", "deleted")
    delete_response(connection, "deleted", LOCAL)
    save(connection, "of_ann", owner="ann")
    save(connection, "foreign", "of_ann")
    if code is None:
        assert [each.id for each in load_chain(connection, asked, LOCAL, depth)] == ["r1", "r2", "r3", "r4"]
        return
    with pytest.raises(RequestRefused, match=says) as refused:
        load_chain(connection, asked, LOCAL, depth)
    assert refused.value.code == code


def test_a_chain_that_is_broken_beyond_the_depth_is_too_long_first(connection: sqlite3.Connection) -> None:
    chain(connection, 6)
    delete_response(connection, "r1", LOCAL)
    with pytest.raises(RequestRefused) as refused:
        load_chain(connection, "r6", LOCAL, 3)
    assert refused.value.code == "previous_response_chain_too_long"


def test_items_are_found_by_their_own_names_and_by_those_that_are_made(connection: sqlite3.Connection) -> None:
    save(connection, "r1", input=(message("named", "msg_in"), message("unnamed")))
    found = find_items(connection, ["in1_r1", "msg_r1", "in0_r1", "msg_in", "out0_r1", "msg_in"], LOCAL)
    assert list(found) == ["in1_r1", "msg_r1", "msg_in"], "an item that has a name is not known by its place"
    assert texts(tuple(found.values())) == ["unnamed", "answer r1", "named"]
    assert find_items(connection, list(found), "ann") == {}
    assert find_items(connection, [], LOCAL) == {}


def test_a_name_used_twice_is_the_first_ones(connection: sqlite3.Connection) -> None:
    for number in (1, 2):
        save(connection, f"r{number}", input=(message(f"version {number}", "msg_x"),))
    assert texts(tuple(find_items(connection, ["msg_x"], LOCAL).values())) == ["version 1"]


def test_a_page_holds_the_history_and_its_own_input_but_not_its_own_output(connection: sqlite3.Connection) -> None:
    chain(connection, 3)
    page = list_input_items(connection, "r3", LOCAL, 10, None, "asc")
    assert page is not None
    assert ids(page.items) == ["in0_r1", "msg_r1", "in0_r2", "msg_r2", "in0_r3"]
    delete_response(connection, "r1", LOCAL)
    page = list_input_items(connection, "r3", LOCAL, 10, None, "asc")
    assert page is not None
    assert ids(page.items) == ["in0_r2", "msg_r2", "in0_r3"]
    for id, owner in (("r1", LOCAL), ("r3", "ann"), ("never", LOCAL)):
        assert list_input_items(connection, id, owner, 10, None, "asc") is None


def test_only_what_is_shown_is_read(connection: sqlite3.Connection) -> None:
    save(connection, "r1", input=tuple(message(str(number) * 3000) for number in range(50)))
    seen: list[str] = []
    connection.set_trace_callback(seen.append)
    list_input_items(connection, "r1", LOCAL, 2, None, "asc")
    (contents,) = [text for text in seen if text.startswith("SELECT key, item_id, hash, data")]
    assert contents.count(",") <= 5, "the contents of two items, not of fifty"


def test_what_is_measured_is_what_lives(connection: sqlite3.Connection) -> None:
    stats = measure(connection)
    assert (stats.responses, stats.deleted, stats.unfinished, stats.pieces) == (0, 0, 0, 0)
    assert (stats.oldest, stats.newest, stats.bytes) == (None, None, measure_bytes(connection))
    save(connection, "r1", at=5.0)
    save(connection, "r2", at=7.0, status="queued")
    save(connection, "r3", at=1.0, status="queued")
    delete_response(connection, "r3", LOCAL)
    stats = measure(connection)
    assert (stats.responses, stats.deleted, stats.unfinished, stats.pieces) == (2, 1, 1, 4)
    assert (stats.oldest, stats.newest) == (5.0, 7.0)


def test_pages_that_were_freed_are_not_counted(connection: sqlite3.Connection) -> None:
    before = measure_bytes(connection)
    save(connection, "r1", padding=str(list(range(100_000))))
    full = measure_bytes(connection)
    delete_response(connection, "r1", LOCAL)
    assert before <= measure_bytes(connection) < full
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    assert free > 0


def test_the_ends_of_branches_are_finished_turns_that_nothing_builds_on(connection: sqlite3.Connection) -> None:
    save(connection, "r1", at=1.0)
    save(connection, "r2", "r1", at=2.0, status="queued")
    three = save(connection, "r3", "never", at=3.0, status="queued")
    delete_response(connection, "r3", LOCAL)
    own = save(connection, "own", "own", at=0.5)
    last = save(connection, "last", at=3.0)
    everything = [(0.5, own), (3.0, three), (3.0, last)]
    first = (-math.inf, 0)
    assert find_ends(connection, first, None, 99) == everything
    assert find_ends(connection, first, None, 2) == everything[:2]
    assert find_ends(connection, everything[1], None, 99) == everything[2:]
    assert find_ends(connection, first, 3.0, 99) == everything[:1]


def test_a_chain_of_two_hundred_turns_is_two_statements(tmp_path: Path) -> None:
    def count_statements(connection: sqlite3.Connection) -> tuple[int, int]:
        seen: list[str] = []
        connection.set_trace_callback(seen.append)
        turns = load_chain(connection, "r199", LOCAL, 1000)
        connection.set_trace_callback(None)
        # SQLite also traces the inner statements of virtual tables, as comments.
        return len(turns), len([statement for statement in seen if not statement.startswith("--")])

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db")
        for number in range(200):
            await store.save(turn(f"r{number}", f"r{number - 1}" if number else None))
        assert await store.readers.run(count_statements) == (200, 2)
        await store.aclose()

    asyncio.run(ask())


def test_every_lookup_uses_an_index(tmp_path: Path) -> None:
    """A scan of a large table is a bug that no small test would feel."""
    scans: list[str] = []

    def explain(connection: sqlite3.Connection, statements: list[str]) -> None:
        for statement in statements:
            for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
                if detail.startswith("SCAN") and not detail.startswith(("SCAN json_each", "SCAN ancestry", "SCAN a")):
                    scans.append(f"{detail}: {statement}")

    async def ask() -> None:
        store = SqliteStore(tmp_path / "store.db", readers=1)
        seen: list[str] = []
        await store.save(turn("r1"))
        await store.writer.run(lambda connection: connection.set_trace_callback(seen.append))
        await store.readers.run(lambda connection: connection.set_trace_callback(seen.append))
        await store.save(turn("r2", "r1"))
        await store.save(turn("r2", "r1", status="in_progress"))
        await store.load("r2")
        await store.chain("r2")
        await store.items(["msg_r2", "in0_r2"])
        await store.list_input_items("r2")
        await store.expired()
        await store.claim("run:r2", holder="me", seconds=9)
        await store.signal("run:r2", "cancel")
        await store.renew("me", seconds=9)
        await store.save(turn("r2", "r1", status="in_progress"), holder="me")
        await store.release("run:r2", holder="me")
        await store.update_status("r2", "completed")
        await store.delete("r2")
        await store.writer.run(lambda connection: connection.set_trace_callback(None))
        await store.readers.run(lambda connection: connection.set_trace_callback(None))
        kinds = ("SELECT", "WITH", "UPDATE", "DELETE")
        statements = [text for text in map(str.strip, seen) if text.startswith(kinds)]
        assert len(statements) > 20
        await store.writer.run(lambda connection: explain(connection, statements))
        await store.aclose()

    asyncio.run(ask())
    assert scans == []
