"""What is known to be in the file is there: whoever else writes to it, removes from it, or takes back what he did."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from isthmus.store.sqlite.connect import connect_writer
from isthmus.store.sqlite.known import Known, known_to
from isthmus.store.sqlite.store import SqliteStore
from isthmus.store.sqlite.writes import save_response
from stored import message, turn

SAME = message("the same words")


def counted(store: SqliteStore) -> list[str]:
    """The statements about pieces that the writer's connection carries out from now on."""
    seen: list[str] = []
    connection = store.writer._connection
    assert connection is not None
    connection.set_trace_callback(lambda told: seen.append(told) if "pieces" in told else None)
    return seen


def run(tmp_path: Path, ask: Any) -> None:
    async def go() -> None:
        store, other = SqliteStore(tmp_path / "store.db"), SqliteStore(tmp_path / "store.db")
        await ask(store, other)
        await other.aclose()
        await store.aclose()

    asyncio.run(go())


def test_what_a_client_repeats_is_neither_looked_for_nor_written_again(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, other: SqliteStore) -> None:
        await store.save(turn("r1", input=(SAME,), output=()))
        seen = counted(store)
        await store.save(turn("r2", input=(SAME, SAME), output=()))
        assert seen == []
        found = await other.load("r2")
        assert found is not None
        assert found.input == (SAME, SAME)

    run(tmp_path, ask)


def test_what_another_process_removed_is_written_anew(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, other: SqliteStore) -> None:
        await store.save(turn("r1", input=(SAME,), output=()))
        await other.delete("r1")
        await other.save(turn("r2", input=(message("in its place"),), output=()))  # perhaps under the same key
        await store.save(turn("r3", input=(SAME,), output=()))
        for id, said in (("r2", message("in its place")), ("r3", SAME)):
            found = await store.load(id)
            assert found is not None
            assert found.input == (said,)

    run(tmp_path, ask)


def test_what_this_process_removed_is_written_anew(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, other: SqliteStore) -> None:
        await store.save(turn("r1", input=(SAME,), output=()))
        await store.delete("r1")
        await store.save(turn("r2", input=(message("in its place"),), output=()))
        await store.save(turn("r3", input=(SAME,), output=()))
        found = await store.load("r3")
        assert found is not None
        assert found.input == (SAME,)

    run(tmp_path, ask)


@pytest.mark.parametrize("together", [True, False], ids=["in a group", "alone"])
def test_what_was_taken_back_was_never_there(tmp_path: Path, together: bool) -> None:
    def save_and_fail(connection: sqlite3.Connection) -> None:
        save_response(connection, turn("never", input=(SAME,), output=()))
        raise ZeroDivisionError

    async def ask(store: SqliteStore, other: SqliteStore) -> None:
        await store.save(turn("r1", input=(), output=()))
        beside = [store.save(turn("r2", input=(message("other"),), output=()))] if together else []
        failed, *_ = await asyncio.gather(store.writer.run(save_and_fail), *beside, return_exceptions=True)
        assert isinstance(failed, ZeroDivisionError)
        await store.save(turn("r3", input=(SAME,), output=()))
        found = await store.load("r3")
        assert found is not None
        assert found.input == (SAME,)

    run(tmp_path, ask)


def test_what_was_known_to_be_there_and_was_damaged_by_another_is_written_anew(tmp_path: Path) -> None:
    async def ask(store: SqliteStore, other: SqliteStore) -> None:
        await store.save(turn("r1", input=(SAME,), output=()))
        await other.writer.run(lambda connection: connection.execute("UPDATE pieces SET data = x'00'").fetchall())
        await store.save(turn("r2", input=(SAME,), output=()))
        found = await store.load("r1")
        assert found is not None
        assert found.input == (SAME,)

    run(tmp_path, ask)


def test_it_is_bounded_and_forgets_the_oldest(tmp_path: Path) -> None:
    connection = connect_writer(tmp_path / "any.db", 1.0)
    known = Known(most=2)
    known.note(b"a", 1)
    assert known.find(b"a") is None, "nobody has asked who else writes"
    known.begin(connection)
    for key, digest in enumerate((b"a", b"b", b"c"), start=1):
        known.note(digest, key)
    assert [known.find(digest) for digest in (b"a", b"b", b"c")] == [None, 2, 3]
    known.forget([1, 2])
    assert [known.find(digest) for digest in (b"b", b"c")] == [None, 3]
    connection.close()


def test_a_connection_of_any_kind_knows_nothing_for_long() -> None:
    connection = sqlite3.connect(":memory:")
    assert known_to(connection) is not known_to(connection)
    connection.close()


class TwoProcesses(RuleBasedStateMachine):
    """Two stores on one file save and delete in turns; each answer is what was saved."""

    which = st.integers(0, 1)
    ids = st.sampled_from(["r1", "r2", "r3", "r4"])
    said = st.lists(st.sampled_from([message(word) for word in ("one", "two", "three")]), max_size=3).map(tuple)

    @initialize(tmp=st.just(None))
    def begin(self, tmp: None) -> None:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        path = Path(self.folder.name) / "store.db"

        async def open_both() -> list[SqliteStore]:
            return [SqliteStore(path), SqliteStore(path)]

        self.stores = self.runner.run(open_both())
        self.model: dict[str, tuple[bytes, ...] | None] = {}

    @rule(which=which, id=ids, said=said)
    def save(self, which: int, id: str, said: tuple[bytes, ...]) -> None:
        kept = self.runner.run(self.stores[which].save(turn(id, input=said, output=())))
        assert kept is (self.model.get(id, ()) is not None)
        if kept:
            self.model[id] = said

    @rule(which=which, id=ids)
    def delete(self, which: int, id: str) -> None:
        there = self.model.get(id) is not None
        assert self.runner.run(self.stores[which].delete(id)) is there
        if there:
            self.model[id] = None

    @rule(which=which)
    def forget_all(self, which: int) -> None:
        self.runner.run(self.stores[which].prune(older_than=1e12))
        self.model.clear()

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        for id, said in self.model.items():
            for store in self.stores:
                found = self.runner.run(store.load(id))
                assert (None if found is None else found.input) == said
        for store in self.stores:
            self.runner.run(store.aclose())
        self.runner.close()
        self.folder.cleanup()


TwoProcesses.TestCase.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestTwoProcesses = TwoProcesses.TestCase
