"""Whole stores, copied and compared."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import ConfigError
from isthmus.store.copying.copy import Step, copy_all
from isthmus.store.copying.ends import End
from isthmus.store.copying.stores import copy_store, open_end
from isthmus.store.copying.tables import ROWS_AT_ONCE, Row
from isthmus.store.open import examine_store, open_store
from kept_histories import fill
from postgres import database_of
from stored import turn


def url_of(folder: Path, name: str) -> str:
    return f"sqlite:{folder / name}.db"


def make(url: str, seed: int, steps: int = 40) -> None:
    async def main() -> None:
        store = open_store(url)
        await fill(store, seed, steps)
        await store.aclose()

    asyncio.run(main())


def rows_of(url: str) -> dict[str, list[dict[str, Any]]]:
    with closing(open_end(url, make=False)) as end:
        end.look()
        found = {
            table.name: [dict(zip(table.columns, row, strict=True)) for row in end.read(table)]
            for table in end.tables()
        }
    for chat in found["chats"]:  # whose order and spaces mean nothing
        chat["metadata"] = json.loads(chat["metadata"])
    for deed in found["deeds"]:  # which one end keeps as bytes
        details = deed["details"]
        deed["details"] = details.decode() if isinstance(details, bytes) else details
    return found


def answers_of(url: str) -> tuple[list[bytes], list[bytes]]:
    """What people see of it."""

    async def main() -> tuple[list[bytes], list[bytes]]:
        store = open_store(url)
        try:
            return [line async for line in store.export()], [line async for line in store.export_conversations()]
        finally:
            await store.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_there_and_back_everything_is_as_it_was(tmp_path_factory: pytest.TempPathFactory, kind: str, seed: int) -> None:
    folder = tmp_path_factory.mktemp("copies")
    one, three = url_of(folder, "one"), url_of(folder, "three")
    two = url_of(folder, "two") if kind == "sqlite" else database_of(folder)
    make(one, seed)
    copied = copy_store(one, two)
    copy_store(two, three)
    assert rows_of(one) == rows_of(two) == rows_of(three)
    assert copied.tables == {name: len(rows) for name, rows in rows_of(one).items()}
    assert answers_of(one) == answers_of(three)
    assert examine_store(three).sound


def test_a_copy_goes_on_with_new_keys(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 1)
    copy_store(one, two)
    make(two, 2)
    assert len(rows_of(two)["responses"]) > len(rows_of(one)["responses"])
    assert examine_store(two).sound


def test_the_key_of_the_envelopes_goes_along_and_is_private(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 1)
    assert copy_store(one, two).envelope_key is False
    (tmp_path / "one.db.key").write_bytes(b"k" * 32)
    assert copy_store(one, two, manner="resume").envelope_key is True
    assert (tmp_path / "two.db.key").read_bytes() == b"k" * 32
    assert (tmp_path / "two.db.key").stat().st_mode & 0o777 == 0o600


def test_what_stands_in_the_target_is_replaced_only_when_asked(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 1)
    make(two, 2)
    before = rows_of(two)
    with pytest.raises(ConfigError, match=r"is not empty: `--force` replaces"):
        copy_store(one, two)
    with pytest.raises(ConfigError, match="is not empty"):
        copy_store(one, two, manner="resume")  # it is no copy of anything
    assert rows_of(two) == before
    copy_store(one, two, manner="force")
    assert rows_of(two) == rows_of(one)


class Broken(Exception):
    pass


@contextmanager
def ends(one: str, two: str) -> Iterator[tuple[End, End]]:
    with closing(open_end(one, make=False)) as source, closing(open_end(two, make=True)) as target:
        yield source, target


def test_a_copy_that_was_broken_off_anywhere_goes_on(tmp_path: Path) -> None:
    one = url_of(tmp_path, "one")
    make(one, 3, steps=60)
    steps: list[Step] = []
    with ends(one, url_of(tmp_path, "all")) as (source, target):
        copy_all(source, target, told=steps.append)
    for place in range(0, len(steps), 3):
        two = url_of(tmp_path, f"two{place}")
        seen = 0

        def break_off(step: Step, place: int = place) -> None:
            nonlocal seen
            seen += 1
            if seen > place:
                raise Broken

        with pytest.raises(Broken), ends(one, two) as (source, target):
            copy_all(source, target, told=break_off)
        if any(rows_of(two).values()):
            with pytest.raises(ConfigError, match=r"`--resume` goes on with the copy that was broken off there"):
                copy_store(one, two)
        done = copy_store(one, two, manner="resume")
        assert rows_of(two) == rows_of(one)
        assert done.written < done.rows or place == 0


def test_what_has_changed_since_is_brought_along(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 4)
    first = copy_store(one, two)

    async def change() -> None:
        store = open_store(one)
        await store.save(turn("resp_new", at=5.0))
        await store.delete("resp_new")
        await store.save(turn("resp_newer", at=6.0))
        await store.forget_deliveries()
        await store.aclose()

    asyncio.run(change())
    second = copy_store(one, two, manner="resume")
    assert rows_of(two) == rows_of(one)
    assert 0 < second.written < first.written / 2


def test_a_target_that_lives_on_is_not_set_back(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 5)
    copy_store(one, two)
    make(two, 6)
    before = rows_of(two)
    with pytest.raises(ConfigError, match="was written to since it was copied"):
        copy_store(one, two, manner="resume")
    with pytest.raises(ConfigError, match="is a copy of"):
        make(url_of(tmp_path, "other"), 7)
        copy_store(url_of(tmp_path, "other"), two, manner="resume")
    assert rows_of(two) == before


def test_the_source_is_read_as_of_one_moment(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 8)
    before = rows_of(one)

    def write(step: Step) -> None:
        with closing(sqlite3.connect(tmp_path / "one.db")) as connection, connection:
            connection.execute("DELETE FROM words")
            connection.execute("UPDATE responses SET status = 'failed'")

    with ends(one, two) as (source, target):
        copy_all(source, target, told=write)
    assert rows_of(two) == before
    assert rows_of(one) != before


def test_somebody_who_writes_to_the_target_meanwhile_is_found_out(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 9)

    def write(step: Step) -> None:
        if step.table == "words":
            with closing(sqlite3.connect(tmp_path / "two.db")) as connection, connection:
                connection.execute("UPDATE responses SET status = 'failed'")

    with pytest.raises(ConfigError, match=r"the table `responses` .*somebody else wrote"), ends(one, two) as both:
        copy_all(*both, told=write)


def test_no_step_is_larger_than_its_bounds(tmp_path: Path) -> None:
    one, two = url_of(tmp_path, "one"), url_of(tmp_path, "two")
    make(one, 10)
    with closing(sqlite3.connect(tmp_path / "one.db")) as connection, connection:
        many = [(f"p{each}", "x", each) for each in range(ROWS_AT_ONCE * 2 + 1)]
        connection.executemany("INSERT INTO words VALUES (?, ?, x'00', ?)", many)
        for each in range(3):
            connection.execute(
                "INSERT INTO pieces (hash, owner, data) VALUES (?, 'local', zeroblob(3000000))", (b"%d" % each,)
            )
    largest: dict[str, int] = {}
    with ends(one, two) as (source, target):
        replace = target.replace

        def watch(table: object, gone: object, rows: list[Row]) -> None:
            name = getattr(table, "name", "")
            largest[name] = max(largest.get(name, 0), len(rows))
            assert sum(len(value) for row in rows for value in row if isinstance(value, bytes)) < 8_000_000
            replace(table, gone, rows)  # type: ignore[arg-type]

        target.replace = watch  # type: ignore[method-assign,assignment]
        copy_all(source, target)
    assert largest["words"] == ROWS_AT_ONCE
