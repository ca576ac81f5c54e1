from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.store.memory import MemoryStore
from isthmus.store.open import database_path, is_server, open_store, open_traces, read_schema
from isthmus.store.traces.postgres import PostgresTraces
from isthmus.store.traces.sqlite import SqliteTraces


@pytest.mark.parametrize("url", ["memory:", "memory://", "MEMORY:"])
def test_memory_urls_open_the_memory_store(url: str) -> None:
    assert isinstance(open_store(url), MemoryStore)


def test_a_relative_path_starts_at_the_given_folder(tmp_path: Path) -> None:
    asyncio.run(open_store("sqlite:here.db", relative_to=tmp_path).aclose())
    assert (tmp_path / "here.db").exists()


def test_a_relative_path_starts_at_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(open_store("sqlite:here.db", durability="power").aclose())
    assert (tmp_path / "here.db").exists()


@pytest.mark.parametrize("form", ["sqlite://{}", "sqlite:{}", "SQLite://{}"])
def test_an_absolute_path_is_taken_as_it_is(form: str, tmp_path: Path) -> None:
    path = tmp_path / "a name with spaces.db"
    asyncio.run(open_store(form.format(path), relative_to=Path("/nowhere")).aclose())
    assert path.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "use `memory:`"),
        ("isthmus.db", "use `memory:`"),
        ("redis://localhost", "use `memory:`"),
        ("memory:x", "use `memory:`"),
        ("sqlite:", "name the file"),
        ("sqlite:a\0b", "name the file"),
        ("sqlite::memory:", "use `memory:`"),
        ("sqlite://relative.db", "three slashes"),
        ("postgresql://localhost/x?no=such", "no URL that PostgreSQL understands"),
    ],
)
def test_a_url_that_cannot_be_used_says_what_to_write(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        open_store(url)
    assert refused.value.param == "store.url"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "PostgreSQL"])
def test_a_server_needs_its_extra(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("isthmus.store.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'isthmus\[postgres\]'") as refused:
        open_store(f"{scheme}://localhost/x")
    assert refused.value.param == "store.url"


def test_traces_lie_where_the_store_is(tmp_path: Path) -> None:
    assert isinstance(open_traces(f"sqlite:{tmp_path}/x.db"), SqliteTraces)
    assert isinstance(open_traces("memory:"), SqliteTraces)
    assert isinstance(open_traces("postgresql://localhost/x"), PostgresTraces)
    assert list(tmp_path.iterdir()) == [], "nothing is opened before it is used"


def test_nobody_loads_the_driver_of_a_server_without_one(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys, isthmus.wiring, isthmus.cli.main\n"
        "from isthmus.store.open import open_store\n"
        f"asyncio.run(open_store('sqlite:{tmp_path / 'x.db'}').aclose())\n"
        "print([name for name in sys.modules if name.startswith('psycopg')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("url", "is_one"), [("postgres://h/d", True), ("PostgreSQL://h/d", True), ("sqlite:x", False)])
def test_a_server_is_known_by_its_scheme(url: str, is_one: bool) -> None:
    assert is_server(url) == is_one


def test_an_unknown_durability_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"`store\.durability` is `hope`"):
        open_store("memory:", durability="hope")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:x.db", "x.db"),
        ("sqlite:///a/x.db", "/a/x.db"),
        ("sqlite:///C:/data/x.db", "C:/data/x.db"),  # Windows
        ("SQLite:x.db", "x.db"),
        ("memory:", None),
    ],
)
def test_the_key_lies_beside_the_file_that_is_opened(url: str, path: str | None) -> None:
    assert database_path(url) == (Path(path) if path else None)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_how_far_a_schema_is_can_be_asked_from_outside(tmp_path: Path, kind: str) -> None:
    from postgres import database_of, empty_database

    url = f"sqlite:{tmp_path}/x.db" if kind == "sqlite" else database_of(tmp_path)
    if kind == "sqlite":
        with pytest.raises(ConfigError, match="there is no store"):
            read_schema(url)
        assert list(tmp_path.iterdir()) == []
    else:
        empty = read_schema(empty_database())
        assert (empty.version, bool(empty.missing), empty.bytes) == ("", True, 0)
    asyncio.run(open_store(url).aclose())
    schema = read_schema(url)
    assert schema.missing == ()
    assert schema.version[:4].isdigit()
    assert schema.bytes > 0
    if kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "x.db")) as connection:
            connection.execute("DELETE FROM isthmus_migrations WHERE name = ?", (schema.version,))
            connection.commit()
        assert read_schema(url).missing == (schema.version,)
