"""The tables of the traces in a file, or in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

_PAGES: Final = 512
"""Pages given back to the file system in one step."""

_WITH: Final = (
    "SELECT chunk, words FROM places WHERE chunk >= ? AND chunk < ? AND instr(words, ?) > 0 ORDER BY chunk DESC"
)
_LAST: Final = (
    "SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'traces'),"
    " (SELECT ended FROM traces ORDER BY seq DESC LIMIT 1)"
)


class SqliteTables(sqlite3.Connection):
    flags: Final = (0, 1)
    """It has none of its own; and of a `bool` Python asks each time whether it would rather be something else."""

    pads: Final = True

    @property
    def most_values(self) -> int:
        return self.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)

    @contextmanager
    def writing(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise

    def last(self) -> tuple[int, float]:
        seq, ended = self.execute(_LAST).fetchone()
        return seq or 0, ended or 0.0

    def note_added(self, latest: int, traces: int, bytes: int) -> None:
        """The file knows both by itself."""

    def chunks_with(self, sought: bytes, first: int, before: int) -> Iterable[tuple[int, bytes]]:
        """One after the other, as far as somebody wants them."""
        return self.execute(_WITH, (first, before, sought))

    def drop_oldest(self, before: int, most: int) -> int:
        oldest = "SELECT seq FROM traces WHERE seq < ? ORDER BY seq LIMIT ?"
        return self.execute(f"DELETE FROM traces WHERE seq IN ({oldest})", (before, most)).rowcount

    def measure(self) -> int:
        pages, free, size = (
            self.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def give_back(self) -> None:
        (free,) = self.execute("PRAGMA freelist_count").fetchone()
        for _ in range(min(_PAGES, free)):
            self.execute("PRAGMA incremental_vacuum(1)")  # Python takes one step of it, however many are asked for

    @contextmanager
    def erasing(self) -> Iterator[None]:
        """Also from the log, unless somebody reads just now."""
        self.execute("PRAGMA secure_delete = ON")
        yield
        self.execute("PRAGMA secure_delete = FAST")
        self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
