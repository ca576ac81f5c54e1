"""A file as one end of a copy: one connection reads as of a moment, another one writes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from isthmus.errors import ConfigError
from isthmus.store.copying.ends import Mark
from isthmus.store.copying.tables import LEFT, MARK, Kind, Row, Table
from isthmus.store.envelope_key import key_path
from isthmus.store.sqlite.connect import FAULTS, Fault, connect_reader, unavailable
from isthmus.store.sqlite.medium import Medium

_BUSY_SECONDS: Final = 10.0
_KINDS: Final[dict[str, Kind]] = {"INTEGER": "integer", "REAL": "real", "TEXT": "text", "BLOB": "blob"}
_read_mark = msgspec.json.Decoder(Mark)


class SqliteEnd:
    def __init__(self, path: Path, *, make: bool) -> None:
        """Brings the file up to date, as every start of a gateway does. `make`: also where there is none yet."""
        if not make and (not path.is_file() or not path.stat().st_size):
            raise ConfigError(f"there is no store at `{path}`: name it as `sqlite:PATH`")
        self._path = path
        with _explained(path):
            self._writer = Medium(path, "power", _BUSY_SECONDS).open()
            self._reader = connect_reader(path, _BUSY_SECONDS)

    @property
    def name(self) -> str:
        return f"sqlite:{self._path}"

    def tables(self) -> list[Table]:
        with _explained(self._path):
            listed = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
            names = [name for (name,) in self._reader.execute(listed) if name not in LEFT]
            return [_describe(self._reader, name) for name in names]

    def look(self) -> None:
        with _explained(self._path):
            if self._reader.in_transaction:
                self._reader.execute("COMMIT")
            self._reader.execute("BEGIN")
            self._reader.execute("SELECT 1 FROM isthmus_migrations").fetchone()  # the moment is that of the first read

    def count(self, table: Table) -> int:
        with _explained(self._path):
            return int(self._reader.execute(f'SELECT count(*) FROM "{table.name}"').fetchone()[0])

    def read(self, table: Table) -> Iterator[Row]:
        order = ", ".join(_quoted(table.columns[place]) for place in table.key)
        with _explained(self._path):
            yield from self._reader.execute(f'SELECT {_listed(table)} FROM "{table.name}" ORDER BY {order}')

    def fit(self, table: Table, rows: Iterable[Row]) -> Iterable[Row]:
        return rows

    def replace(self, table: Table, gone: Sequence[Row], rows: Sequence[Row]) -> None:
        same = " AND ".join(f"{_quoted(table.columns[place])} IS ?" for place in table.key)
        places = ", ".join("?" * len(table.columns))
        with _explained(self._path):
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                self._writer.executemany(f'DELETE FROM "{table.name}" WHERE {same}', gone)
                self._writer.executemany(f'INSERT INTO "{table.name}" ({_listed(table)}) VALUES ({places})', rows)
                self._writer.execute("COMMIT")
            except BaseException:
                self._writer.execute("ROLLBACK")
                raise

    def clear(self) -> None:
        with _explained(self._path):
            self._writer.execute("BEGIN IMMEDIATE")
            for name in [*(table.name for table in self.tables()), "leases"]:
                self._writer.execute(f'DELETE FROM "{name}"')
            self._writer.execute("COMMIT")

    def settle(self, tables: Sequence[Table]) -> None:
        """SQLite gives a new row the key behind the last one by itself; what is in the log goes into the file."""
        with _explained(self._path):
            self._reader.execute("COMMIT")
            self._writer.execute("UPDATE keys_mark SET number = number + 1")
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def mark(self) -> Mark | None:
        with _explained(self._path):
            if not self._writer.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (MARK,)).fetchone():
                return None
            found = self._writer.execute(f"SELECT told FROM {MARK}").fetchone()
            return None if found is None else _read_mark.decode(found[0])

    def note(self, mark: Mark) -> None:
        with _explained(self._path):
            self._writer.execute("BEGIN IMMEDIATE")
            self._writer.execute(f"CREATE TABLE IF NOT EXISTS {MARK} (told TEXT NOT NULL)")
            self._writer.execute(f"DELETE FROM {MARK}")
            self._writer.execute(f"INSERT INTO {MARK} VALUES (?)", (msgspec.json.encode(mark).decode(),))
            self._writer.execute("COMMIT")

    def envelope_key(self) -> bytes | None:
        try:
            return key_path(self._path).read_bytes() or None
        except FileNotFoundError:
            return None

    def set_envelope_key(self, key: bytes) -> None:
        path = key_path(self._path)
        draft = path.with_name(f"{path.name}.part")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)

    def close(self) -> None:
        # The writer last: the last connection to close folds the log into the file.
        with closing(self._writer), closing(self._reader):
            pass


class _explained:
    """SQLite's words as ours."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            raise ConfigError(
                f"`{self._path}` has rows that stand in the way ({error}): `--force` replaces all of them"
            )
        if isinstance(error, FAULTS):
            fault: Fault = error
            raise unavailable(fault, self._path) from error


def _describe(connection: sqlite3.Connection, name: str) -> Table:
    rows = connection.execute(f'PRAGMA table_info("{name}")').fetchall()
    keyed = sorted((key, place) for place, _, _, _, _, key in rows if key)
    return Table(
        name=name,
        columns=tuple(row[1] for row in rows),
        kinds=tuple(_KINDS[row[2].upper()] for row in rows),
        key=tuple(place for _, place in keyed),
    )


def _listed(table: Table) -> str:
    return ", ".join(map(_quoted, table.columns))


def _quoted(column: str) -> str:
    return f'"{column}"'
