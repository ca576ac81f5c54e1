from __future__ import annotations

from contextlib import closing
from pathlib import Path

from isthmus.ports.packed import pack_all
from isthmus.store.traces.schema import open_writer
from isthmus.store.traces.writes import Memory, keep
from traced import traced


def test_room_that_nobody_needs_goes_back_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(open_writer(path)) as tables:
        keep(tables, Memory(), pack_all([traced(str(number)) for number in range(500)]))
        tables.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        full = path.stat().st_size
        with tables.writing():
            tables.drop_oldest(1000, 1000)
        tables.give_back()
        tables.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert path.stat().st_size < full / 2


def test_what_was_erased_stands_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(open_writer(path)) as tables:
        keep(tables, Memory(), pack_all([traced("findme")]))
        with tables.erasing(), tables.writing():
            tables.execute("UPDATE traces SET summary = x'', detail = NULL")
    assert b"findme" not in path.read_bytes()
