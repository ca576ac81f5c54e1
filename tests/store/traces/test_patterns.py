"""What many traces have in common is kept once, for as long as one of them is there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from isthmus.errors import StoreUnavailable
from isthmus.ports.packed import PackedTrace, pack
from isthmus.store.traces import patterns as module
from isthmus.store.traces import writes
from isthmus.store.traces.patterns import Filler, Patterns
from isthmus.store.traces.sqlite import SqliteTraces
from isthmus.store.traces.tables import Tables
from isthmus.store.traces.writes import Memory, keep, prune
from store.traces.test_tables import tables as tables
from traced import patterned, traced


def _note_after(monkeypatch: pytest.MonkeyPatch, traces: int) -> None:
    for each in (module, writes):
        monkeypatch.setattr(each, "NOTED", traces)


def some(*names: str, model: str = "m") -> Sequence[PackedTrace]:
    return [patterned(pack(traced(name, 1_000.0, model=model, response="", thread=""))) for name in names]


def count(tables: Tables) -> int:
    (found,) = tables.execute("SELECT count(*) FROM patterns").fetchone()
    return int(found)


def test_one_row_for_all_that_are_alike_whoever_writes_them(tables: Tables) -> None:
    memory, another = Memory(), Memory()
    for writer in (memory, another, memory):
        keep(tables, writer, some("1", "2", "3"))
    assert count(tables) == 1
    keep(tables, another, [*some("4", model="n"), *some("5"), pack(traced("6"))])
    assert count(tables) == 2
    numbers = [row[0] for row in tables.execute("SELECT pattern FROM traces ORDER BY seq")]
    assert (len({*numbers[:9], numbers[10]}), numbers[11]) == (1, None)
    sizes = tables.execute("SELECT max(length(summary)), max(length(detail)) FROM traces WHERE pattern IS NOT NULL")
    assert max(sizes.fetchone()) < 40, "only what is their own"


def test_they_go_when_the_last_trace_of_theirs_has_gone_and_not_before(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    _note_after(monkeypatch, 10)
    memory = Memory()
    keep(tables, memory, some("old", model="old"))
    for number in range(20):
        keep(tables, memory, some(*(f"{number}.{each}" for each in range(5))))
        prune(tables, None, 1, 2)
    while prune(tables, None, 1, 10):
        pass
    keep(tables, memory, some("last"))
    assert count(tables) == 1, "that of those that came all the time"
    (number,) = tables.execute("SELECT pattern FROM traces").fetchone()
    (data,) = tables.execute("SELECT summary FROM traces").fetchone()
    assert b'"id":"req_last"' in Filler(tables).head(number, data)


def test_one_that_a_long_group_uses_to_its_end_is_there_for_the_last_of_it(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    _note_after(monkeypatch, 5)
    keep(tables, Memory(), some(*map(str, range(100))))
    for _ in range(9):
        assert prune(tables, None, 1, 10) == 10
    for number, data in tables.execute("SELECT pattern, summary FROM traces").fetchall():
        assert b'"id":"req_9' in Filler(tables).head(number, data)


def test_what_was_dropped_is_kept_anew_when_it_comes_again(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    _note_after(monkeypatch, 2)
    memory = Memory()
    keep(tables, memory, some("1"))
    keep(tables, memory, [pack(traced(str(number))) for number in range(9)])
    while prune(tables, None, 1, 10):
        pass
    assert count(tables) == 0
    keep(tables, memory, some("2"))
    number, data = tables.execute("SELECT pattern, summary FROM traces").fetchone()
    assert b'"id":"req_2"' in Filler(tables).head(number, data)


def test_few_are_remembered(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 3)
    known = Patterns()
    for number in range(10):
        (trace,) = some("1", model=f"m{number}")
        assert trace.pattern is not None
        with tables.writing():
            known.find(tables, trace.pattern, number)
        assert len(known._known) <= 3
    assert count(tables) == 10


def test_a_pattern_that_is_missing_is_told_as_damage() -> None:
    store = SqliteTraces()
    store.keep(some("1"))
    store.write(lambda tables: tables.execute("DELETE FROM patterns"))
    with pytest.raises(StoreUnavailable, match="damaged"):
        asyncio.run(store.list(None))
    store.close()
