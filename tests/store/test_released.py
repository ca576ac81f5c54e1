"""Files of released versions open with today's store, and everything in them goes on. How they were made: see there."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from flowing import DEEPSEEK, PLAIN, running_flow
from isthmus.bridge.envelope import unseal
from isthmus.errors import ConfigError
from isthmus.ports import EventBatch, StoredResponse
from isthmus.store.envelope_key import envelope_key
from isthmus.store.packing import hash_piece, unpack
from isthmus.store.pieces import FIELD, INPUT, OUTPUT
from isthmus.store.sqlite.store import SqliteStore
from isthmus.testing import chat
from stored import message, turn

RELEASED = Path(__file__).parent / "released" / "0.1.0"
MADE: dict[str, Any] = json.loads((RELEASED / "made.json").read_text())
LAST = MADE["chain"][-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A copy of the database, with its key beside it."""
    for name in ("isthmus.sqlite", "isthmus.sqlite.key"):
        shutil.copy(RELEASED / name, tmp_path)
    return tmp_path / "isthmus.sqlite"


def upgraded(path: Path, question: Callable[[SqliteStore], Awaitable[None]]) -> None:
    async def ask() -> None:
        store = SqliteStore(path)
        try:
            await question(store)
        finally:
            await store.aclose()

    asyncio.run(ask())


def test_every_response_reads_as_it_was(path: Path) -> None:
    async def ask(store: SqliteStore) -> None:
        for id, response in MADE["responses"].items():
            found = await store.load(id)
            assert found is not None
            assert found.owner == "local"
            assert msgspec.json.decode(found.response) == response
            page = await store.list_input_items(id, limit=100)
            assert page is not None
            assert [msgspec.json.decode(item) for item in page.items] == MADE["input_items"][id]

    upgraded(path, ask)


def test_chains_and_forks_go_on(path: Path) -> None:
    async def ask(store: SqliteStore) -> None:
        assert [turn.id for turn in await store.chain(LAST)] == MADE["chain"]
        for number, parent in enumerate((LAST, MADE["fork"])):
            await store.save(turn(f"next{number}", parent))
            assert [turn.id for turn in await store.chain(f"next{number}")] == [
                *MADE["chain"][:3],
                parent,
                f"next{number}",
            ]

    upgraded(path, ask)


def test_items_are_found_by_their_ids(path: Path) -> None:
    made = {item["id"]: item for response in MADE["responses"].values() for item in response["output"]}
    assert {item["type"] for item in made.values()} == {"reasoning", "function_call", "message"}

    async def ask(store: SqliteStore) -> None:
        found = await store.items(list(made))
        assert {id: msgspec.json.decode(item) for id, item in found.items()} == made

    upgraded(path, ask)


def test_stream_events_are_told_again(path: Path) -> None:
    async def ask(store: SqliteStore) -> None:
        for after in (-1, 3):
            told = [msgspec.json.decode(event) for event in await store.events(MADE["background"], after=after)]
            assert told == MADE["events"][after + 1 :]

    upgraded(path, ask)


def test_what_was_deleted_stays_deleted(path: Path) -> None:
    async def ask(store: SqliteStore) -> None:
        assert await store.load(MADE["deleted"]) is None
        assert not await store.save(StoredResponse(MADE["deleted"], b"{}"))
        assert (await store.stats()).deleted == 1

    upgraded(path, ask)


def test_what_was_being_made_is_an_orphan_that_can_be_taken_over(path: Path) -> None:
    async def ask(store: SqliteStore) -> None:
        (orphan,) = await store.expired()
        assert (orphan.id, orphan.status) == (MADE["unfinished"], "queued")
        told = await store.events(orphan.id)
        assert len(told) >= 6
        assert await store.claim(f"run:{orphan.id}", owner=orphan.owner, holder="me", seconds=60)
        assert await store.expired() == []
        rest = EventBatch(len(told), (b"{}",))
        assert await store.save(replace(orphan, status="completed"), events=rest, holder="me")
        assert await store.events(orphan.id) == [*told, b"{}"]

    upgraded(path, ask)


def test_sealed_envelopes_open_with_their_key(path: Path) -> None:
    key = envelope_key(path)
    assert key == (RELEASED / "isthmus.sqlite.key").read_bytes()

    async def ask(store: SqliteStore) -> None:
        opened = []
        for each in await store.chain(LAST):
            items = [msgspec.json.decode(item) for item in each.output]
            thoughts = [item["encrypted_content"] for item in items if item["type"] == "reasoning"]
            opened += [unseal(sealed, key, owner="whoever came since") for sealed in thoughts]
        assert [sealed and sealed.text for sealed in opened] == ["Which city? Rome first.", "And Oslo."]

    upgraded(path, ask)


def test_content_is_still_stored_once(path: Path) -> None:
    async def ask(store: SqliteStore) -> None:
        before = await store.stats()
        for number, id in enumerate(MADE["chain"]):
            found = await store.load(id)
            assert found is not None
            await store.save(replace(found, id=f"again{number}"))
        assert (await store.stats()).pieces == before.pieces
        await store.save(turn("new", input=(message("never said before"),), output=()))
        assert (await store.stats()).pieces == before.pieces + 1
        for id in ("new", *(f"again{number}" for number in range(4))):
            assert await store.delete(id)
        assert (await store.stats()).pieces == before.pieces

    upgraded(path, ask)


def test_every_piece_belongs_to_the_local_owner_and_is_found_by_its_content(path: Path) -> None:
    asyncio.run(SqliteStore(path).aclose())
    with closing(sqlite3.connect(path)) as connection:
        for table in ("responses", "pieces"):
            assert connection.execute(f"SELECT DISTINCT owner FROM {table}").fetchall() == [("local",)]
        pieces = connection.execute("SELECT hash, data, place FROM pieces JOIN parts ON piece = pieces.key").fetchall()
        assert {place for _, _, place in pieces} == {INPUT, OUTPUT, FIELD}
        for hash, data, place in pieces:
            assert hash == hash_piece("local", place == FIELD, unpack(data))
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_the_gateway_goes_on_with_it(path: Path) -> None:
    for suffix in ("", ".key"):
        path.with_name(path.name + suffix).rename(path.with_name("flow.db" + suffix))
    with running_flow(path.parent) as flow:
        with flow.streaming(f"/v1/responses/{MADE['unfinished']}?stream=true", method="GET") as left:
            assert list(left)[-1]["type"] == "response.failed"  # nobody makes it any more, and somebody says so
        assert flow.get(f"/v1/responses/{MADE['deleted']}").status == 404
        assert flow.get(f"/v1/responses/{LAST}").json == MADE["responses"][LAST]
        with flow.streaming(f"/v1/responses/{MADE['background']}?stream=true", method="GET") as again:
            assert list(again) == MADE["events"]
        flow.script(chat("By night train."), chat("Yes."))
        flow.create({"model": PLAIN, "input": "Which one?", "previous_response_id": LAST})
        says = [said.get("content") for said in flow.sent[0]["messages"]]
        assert [word for word in says if word] == [
            "Weather in Rome and Oslo?",
            "sunny",
            "snow",
            "Rome is sunny, Oslo is not.",
            "How do I get there?",
            "Take the train.",
            "Which one?",
        ]
        middle = {"model": DEEPSEEK, "previous_response_id": MADE["chain"][1], "reasoning": {"effort": "high"}}
        flow.create({**middle, "input": [{"type": "function_call_output", "call_id": "call_2", "output": "rain"}]})
        thoughts = [said.get("reasoning_content") for said in flow.sent[1]["messages"] if said["role"] == "assistant"]
        assert thoughts == ["Which city? Rome first.", "And Oslo."]


def test_a_file_that_a_newer_version_has_opened_is_refused_unchanged(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO isthmus_migrations VALUES ('9999_from_the_future', '')")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with pytest.raises(
        ConfigError, match=r"newer Isthmus \(it has `9999_from_the_future`\): upgrade Isthmus, or point"
    ):
        SqliteStore(path)
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before
