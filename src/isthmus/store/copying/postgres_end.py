"""PostgreSQL as one end of a copy: one connection reads as of a moment, another one writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Any, Final

import msgspec
import psycopg
from psycopg import sql

from isthmus.errors import ConfigError
from isthmus.store.copying.ends import Mark
from isthmus.store.copying.tables import LEFT, MARK, Kind, Row, Table
from isthmus.store.postgres.connect import Connection, Options, connect
from isthmus.store.postgres.faults import explain, words
from isthmus.store.postgres.migrations import migrate
from isthmus.store.postgres.texts import name as named
from isthmus.store.postgres.texts import text

_PATIENTLY: Final = 24 * 3600.0
"""Seconds that one statement may take, and that one may wait for the other end."""
_AT_ONCE: Final = 100
"""Rows fetched in one go: each may be as large as a request."""
_KEY: Final = "envelope_key"
_KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("bigint", "integer", "smallint", "boolean"), "integer"),
    "double precision": "real",
    "text": "text",
    "timestamp with time zone": "text",
    "bytea": "blob",
    "jsonb": "json",
}
_READ: Final = {
    "boolean": "{}::integer",
    "jsonb": "{}::text",
    "timestamp with time zone": "to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
}
"""What differs from SQLite, as SQLite has it."""
_WRITE: Final = {
    "boolean": "%s::bigint::integer::boolean",
    "jsonb": "%s::text::jsonb",
    "timestamp with time zone": "(%s::text || '+00')::timestamptz",
}
_DIGESTED: Final = ("responses", "conversations", "conversation_items")
"""Tables whose digests are made of their names: these are copied as they are, or not at all."""
_read_mark = msgspec.json.Decoder(Mark)


class PostgresEnd:
    def __init__(self, options: Options, *, make: bool) -> None:
        """Brings the schema up to date, as every start of a gateway does. `make`: also where there is none yet."""
        self._options = replace(options, durability="power", statement_timeout=_PATIENTLY)
        self._types: dict[str, dict[str, str]] = {}
        self._identities: dict[str, str] = {}
        self._indexed: set[tuple[str, str]] = set()
        with self._explained(), ExitStack() as opened:
            self._writer: Connection = opened.enter_context(closing(connect(self._options)))
            if not make and not self._ask("SELECT 1 FROM pg_namespace WHERE nspname = %s", options.schema):
                raise ConfigError(f"there is no store in the schema `{options.schema}` of `{self.name}`")
            migrate(self._writer, self._options)
            self._reader: Connection = opened.enter_context(closing(connect(self._options)))
            self._describe()
            opened.pop_all()

    @property
    def name(self) -> str:
        return self._options.address.name

    def tables(self) -> list[Table]:
        found = []
        for name, types in sorted(self._types.items()):
            keyed = self._ask(
                "SELECT a.attname::text FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (place, at),"
                " pg_attribute a WHERE i.indrelid = %s::regclass AND i.indisprimary AND a.attrelid = i.indrelid"
                " AND a.attnum = k.place ORDER BY k.at",
                name,
            )
            columns = tuple(types)
            key = tuple(columns.index(column) for (column,) in keyed)
            found.append(Table(name, columns, tuple(_KINDS[types[column]] for column in columns), key))
        return found

    def look(self) -> None:
        with self._explained():
            self._reader.execute("ROLLBACK" if self._reader.info.transaction_status else "SELECT 1")
            self._reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._reader.execute("SELECT 1 FROM isthmus_migrations")  # the moment is that of the first read

    def count(self, table: Table) -> int:
        with self._explained():
            found = self._reader.execute(
                sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.name))
            ).fetchone()
            assert found is not None
            return int(found[0])

    def read(self, table: Table) -> Iterator[Row]:
        types = self._types[table.name]
        columns = sql.SQL(", ").join(_read(column, types[column]) for column in table.columns)
        order = sql.SQL(", ").join(_in_order(table.columns[place], types[table.columns[place]]) for place in table.key)
        question = sql.SQL("SELECT {} FROM {} ORDER BY {}").format(columns, sql.Identifier(table.name), order)
        with self._explained(), self._reader.cursor(f"copy_{table.name}", binary=True) as cursor:
            cursor.itersize = _AT_ONCE
            cursor.execute(question)
            yield from cursor

    def fit(self, table: Table, rows: Iterable[Row]) -> Iterable[Row]:
        """Names as the store itself would write them: without NUL, and none longer than an index holds."""
        if table.name in _DIGESTED or "text" not in table.kinds:
            return rows
        shorten = [self._shortener(table.name, *each) for each in zip(table.columns, table.kinds, strict=True)]
        return (
            tuple(fit(value) if fit and value else value for fit, value in zip(shorten, row, strict=True))
            for row in rows
        )

    def _shortener(self, table: str, column: str, kind: Kind) -> Callable[[str], str] | None:
        return None if kind != "text" else named if (table, column) in self._indexed else text

    def replace(self, table: Table, gone: Sequence[Row], rows: Sequence[Row]) -> None:
        types = self._types[table.name]
        name = sql.Identifier(table.name)
        same = sql.SQL(" AND ").join(
            sql.SQL("{} = %s").format(sql.Identifier(table.columns[place])) for place in table.key
        )
        places = sql.SQL(", ").join(sql.SQL(_WRITE.get(types[column], "%s")) for column in table.columns)
        columns = sql.SQL(", ").join(map(sql.Identifier, table.columns))
        written = sql.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE VALUES ({})").format(name, columns, places)
        with self._explained(table), self._writer.transaction(), self._writer.cursor() as cursor:
            if gone:
                cursor.executemany(sql.SQL("DELETE FROM {} WHERE {}").format(name, same), gone)
            if rows:
                cursor.executemany(written, _as_bytes(rows, [types[column] == "bytea" for column in table.columns]))

    def clear(self) -> None:
        names = sql.SQL(", ").join(map(sql.Identifier, [*self._types, "leases"]))
        with self._explained():
            self._reader.execute("ROLLBACK" if self._reader.info.transaction_status else "SELECT 1")
            self._writer.execute(sql.SQL("TRUNCATE {}").format(names))

    def settle(self, tables: Sequence[Table]) -> None:
        with self._explained():
            for table, column in self._identities.items():
                highest = sql.SQL("SELECT setval(pg_get_serial_sequence({}, {}), max({})) FROM {} HAVING count(*) > 0")
                names = (sql.Literal(f'"{table}"'), sql.Literal(column), sql.Identifier(column), sql.Identifier(table))
                self._writer.execute(highest.format(*names))
            self._writer.execute("UPDATE keys_mark SET number = number + 1")

    def mark(self) -> Mark | None:
        with self._explained():
            if not self._ask("SELECT 1 WHERE to_regclass(%s) IS NOT NULL", MARK):
                return None
            found = self._ask(f"SELECT told FROM {MARK}")
            return _read_mark.decode(found[0][0]) if found else None

    def note(self, mark: Mark) -> None:
        with self._explained(), self._writer.transaction():
            self._writer.execute(f"CREATE TABLE IF NOT EXISTS {MARK} (told text NOT NULL)".encode())
            self._writer.execute(f"DELETE FROM {MARK}".encode())
            told = msgspec.json.encode(mark).decode()
            self._writer.execute(f"INSERT INTO {MARK} VALUES (%s)".encode(), (told,))

    def envelope_key(self) -> bytes | None:
        with self._explained():
            found = self._ask("SELECT value FROM secrets WHERE name = %s", _KEY)
            return bytes(found[0][0]) if found else None

    def set_envelope_key(self, key: bytes) -> None:
        with self._explained():
            change = "INSERT INTO secrets VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            self._writer.execute(change, (_KEY, key))

    def close(self) -> None:
        with closing(self._writer), closing(self._reader):
            pass

    def _describe(self) -> None:
        rows = self._ask(
            "SELECT table_name::text, column_name::text, data_type::text, is_identity::text"
            " FROM information_schema.columns WHERE table_schema = %s ORDER BY table_name, ordinal_position",
            self._options.schema,
        )
        for table, column, type, is_identity in rows:
            if table in LEFT:
                continue
            self._types.setdefault(table, {})[column] = type
            if is_identity == "YES":
                self._identities[table] = column
        self._indexed = set(
            self._ask(
                "SELECT c.relname::text, a.attname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid"
                " JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
                " AND a.attnum = ANY (i.indkey) WHERE n.nspname = %s",
                self._options.schema,
            )
        )

    def _ask(self, question: str, *values: Any) -> list[Any]:
        return self._writer.execute(question.encode(), values).fetchall()

    @contextmanager
    def _explained(self, table: Table | None = None) -> Iterator[None]:
        """PostgreSQL's words as ours."""
        try:
            yield
        except psycopg.IntegrityError as error:
            raise ConfigError(
                f"`{self.name}` has rows that stand in the way ({words(error)}): `--force` replaces all of them"
            ) from error
        except psycopg.DataError as error:
            where = "" if table is None else f" in the table `{table.name}`"
            raise ConfigError(f"`{self.name}` has no place for a value{where} ({words(error)})") from error
        except psycopg.Error as error:
            raise explain(error, self.name) from error


def _as_bytes(rows: Sequence[Row], in_bytes: list[bool]) -> Sequence[Row]:
    """Text of the other end that is kept as bytes here."""
    if not any(is_bytes and isinstance(value, str) for is_bytes, value in zip(in_bytes, rows[0], strict=True)):
        return rows
    return [
        tuple(
            value.encode() if is_bytes and isinstance(value, str) else value
            for is_bytes, value in zip(in_bytes, row, strict=True)
        )
        for row in rows
    ]


def _read(column: str, type: str) -> sql.Composable:
    return sql.SQL(_READ.get(type, "{}")).format(sql.Identifier(column))


def _in_order(column: str, type: str) -> sql.Composable:
    """Text by its bytes, as SQLite has it, whatever the database's language."""
    return sql.SQL('{} COLLATE "C"' if type == "text" else "{}").format(sql.Identifier(column))
