from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus.errors import ConfigError
from isthmus.store.sqlite.connect import connect_writer
from isthmus.store.sqlite.migrations import MIGRATIONS, migrate
from isthmus.store.sqlite.store import SqliteStore
from isthmus.store.sqlite.writes import save_response
from stored import message, turn

SAID = (message("the same", "msg_1"),)


def applied(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM isthmus_migrations ORDER BY rowid")]


def test_every_step_runs_once_and_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(connect_writer(path, 1.0)) as connection:
        assert migrate(connection, path) == [name for name, _ in MIGRATIONS]
        assert migrate(connection, path) == []
    assert applied(path) == [name for name, _ in MIGRATIONS]


def test_names_of_steps_are_unique_and_in_order() -> None:
    names = [name for name, _ in MIGRATIONS]
    assert names == sorted(set(names))


def test_an_older_file_is_brought_up_to_date_with_its_content(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_save(path, "r1"))

    def add_notes(connection: sqlite3.Connection) -> None:
        connection.execute("ALTER TABLE responses ADD COLUMN note TEXT")

    with closing(connect_writer(path, 1.0)) as connection:
        assert migrate(connection, path, [*MIGRATIONS, ("9999_notes", add_notes)]) == ["9999_notes"]
        assert connection.execute("SELECT id, note FROM responses").fetchall() == [("r1", None)]


def test_who_had_no_name_becomes_local_and_shares_what_local_had(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    before = [step for step in MIGRATIONS if step[0] != "0006_local_owner"]
    big: dict[str, Any] = {"tools": ["t" * 3000]}
    with closing(connect_writer(path, 1.0)) as connection:
        migrate(connection, path, before)
        for owner in ("", "local", "ann"):
            for id, previous in (("1", None), ("2", f"{owner}1")):
                record = turn(f"{owner}{id}", previous, input=SAID, output=SAID, owner=owner, **big)
                save_response(connection, record)
        save_response(connection, turn("own", input=(message("only here"),), output=(), owner=""))
        connection.execute("UPDATE responses SET turn_digest = NULL, row_digest = NULL")  # as they were at that time
        assert connection.execute("SELECT count(*) FROM pieces").fetchone() == (3 * 2 + 1,)

    async def ask() -> None:
        store = SqliteStore(path)
        assert (await store.stats()).pieces == 2 * 2 + 1
        for id, owner in (("2", "local"), ("local2", "local"), ("ann2", "ann")):
            assert [(each.input, each.output) for each in await store.chain(id, owner=owner)] == [(SAID, SAID)] * 2
            found = await store.load(id, owner=owner)
            assert found is not None
            assert msgspec.json.decode(found.response)["tools"] == big["tools"]
        assert await store.load("ann2") is None
        for id in ("1", "2", "own"):
            assert await store.delete(id)
        assert (await store.stats()).pieces == 2 * 2, "what the two shared is still there"
        assert len(await store.chain("local2")) == 2
        await store.aclose()

    asyncio.run(ask())


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def fail_midway(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        connection.execute("SELECT * FROM no_such_table")

    with closing(connect_writer(path, 1.0)) as connection:
        with pytest.raises(ConfigError, match="no_such_table"):
            migrate(connection, path, [*MIGRATIONS, ("9999_half", fail_midway)])
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    assert applied(path) == [name for name, _ in MIGRATIONS]


def test_a_file_of_a_newer_version_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    asyncio.run(_save(path, "r1"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO isthmus_migrations VALUES ('9999_from_the_future', '')")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"newer Isthmus \(it has `9999_from_the_future`\): upgrade"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_the_database_of_another_program_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another program"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_processes_that_start_at_the_same_moment_all_open_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from isthmus.store.sqlite.store import SqliteStore\n"
        "store = SqliteStore(Path(sys.argv[1])); asyncio.run(store.aclose())"
    )
    started = [subprocess.Popen([sys.executable, "-c", code, str(path)]) for _ in range(6)]
    assert [process.wait(60) for process in started] == [0] * 6
    assert applied(path) == [name for name, _ in MIGRATIONS]


async def _save(path: Path, id: str) -> None:
    store = SqliteStore(path)
    await store.save(turn(id))
    await store.aclose()
