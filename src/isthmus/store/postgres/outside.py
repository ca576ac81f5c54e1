"""A look at the database from outside, by whoever is no gateway: nothing is made there that is missing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Final, TypeVar

import psycopg

from isthmus.bridge.types.plan import Lesson
from isthmus.errors import ConfigError
from isthmus.ports import StoredWord
from isthmus.store.damage import Examined
from isthmus.store.postgres.connect import Connection, Options
from isthmus.store.postgres.examine import examine
from isthmus.store.postgres.faults import explain
from isthmus.store.postgres.learned import load_lessons, load_words
from isthmus.store.postgres.medium import Medium
from isthmus.store.postgres.migrations import MIGRATIONS, missing
from isthmus.store.postgres.texts import name

T = TypeVar("T")
_NO_TABLE: Final = "42P01"


def look_at_lessons(options: Options, provider: str, model: str, since: float) -> list[Lesson]:
    return _look(options, partial(load_lessons, provider=provider, model=name(model), since=since)) or []


def look_at_words(options: Options, since: float) -> list[StoredWord]:
    return _look(options, partial(load_words, since=since)) or []


def examine_all(options: Options, *, repair: bool) -> Examined:
    found = _look(options, partial(examine, repair=repair))
    if found is None:
        raise _none(options)
    return found


def look_at_schema(options: Options) -> tuple[str, tuple[str, ...], int]:
    """The newest step that ran, those that did not, and the bytes that all of it takes."""

    def look(connection: Connection) -> tuple[str, tuple[str, ...], int]:
        left = missing(connection, options, MIGRATIONS)
        done = [step for step, _ in MIGRATIONS if step not in left]
        sizes = (
            "SELECT coalesce(sum(pg_total_relation_size(pg_class.oid)), 0)::bigint FROM pg_class"
            " JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s AND relkind = 'r'"
        )
        row = connection.execute(sizes, (options.schema,)).fetchone()
        return (done[-1] if done else ""), tuple(left), int(row[0]) if row else 0

    return _look(options, look) or ("", tuple(step for step, _ in MIGRATIONS), 0)


def check_there(options: Options) -> None:
    """Refuse what is no store yet: whoever opened it would make one."""
    if _look(options, lambda connection: connection.execute("SELECT 1 FROM isthmus_migrations")) is None:
        raise _none(options)


def _none(options: Options) -> ConfigError:
    where = f"the schema `{options.schema}` of `{options.address.name}`"
    return ConfigError(f"there is no store in {where}: are `store.url` and `store.schema` right?", param="store.url")


def _look(options: Options, read: Callable[[Connection], T]) -> T | None:
    """`None`: there is no store."""
    with closing(Medium(options).connect()) as connection:
        try:
            return read(connection)
        except psycopg.Error as error:
            if error.sqlstate == _NO_TABLE:
                return None
            raise explain(error, options.address.name) from error
