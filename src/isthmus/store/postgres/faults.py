"""What PostgreSQL says, in our words: whether it is away, whether something in it is damaged, and what to do next."""

from __future__ import annotations

from typing import Final

import psycopg

from isthmus.errors import ConfigError, StoreDamaged, StoreUnavailable

AGAIN: Final = frozenset({"40001", "40P01", "23502", "23505"})
"""Two transactions were in each other's way, and this one was undone: it is done again from its beginning. The last
two: a piece that was there is gone, a row that was not there is there."""
_DAMAGED: Final = frozenset({"XX001", "XX002"})
_TOO_SLOW: Final = frozenset({"57014", "55P03"})
_NO_RIGHT: Final = "42501"
_ADVICE: Final = {
    "08": "check that the server runs and can be reached from here",
    "25": "the server takes no writes: point `store.url` to the primary, or add `target_session_attrs=read-write`",
    "28": "check user and password of `store.url`, and `pg_hba.conf` of the server",
    "3D": "create the database, or name another one in `store.url`",
    "53": "give the server more room (disk, memory, `max_connections`), or lower `store.max_connections`",
    "57": "the server is stopping or starting; it is tried again by itself",
    "58": "check the server's disk and its log",
}
"""By the class of the code (https://www.postgresql.org/docs/18/errcodes-appendix.html, 2026-11-17)."""


def is_lost(error: psycopg.Error) -> bool:
    """Whether it speaks of the connection or the server, not of what was asked."""
    code = error.sqlstate
    if code is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return (code[:2] in {"08", "57", "58"} and code not in _TOO_SLOW) or code == "25006"


def explain(error: psycopg.Error, name: str) -> ConfigError | psycopg.Error:
    """What to raise; itself where nothing but a bug explains it."""
    code = error.sqlstate or "08"
    if code == _NO_RIGHT:
        return unavailable(words(error), "give its user the rights on its schema (see the guide to PostgreSQL)", name)
    if code in _DAMAGED:
        return StoreDamaged(f"the store `{name}` is damaged where this is stored ({words(error)}): restore a backup")
    if code in _TOO_SLOW:
        return StoreUnavailable(
            f"the store `{name}` took too long for one step ({words(error)}): look at the server's load, or raise"
            " `store.statement_timeout`"
        )
    return unavailable(words(error), advice(error), name) if code[:2] in _ADVICE else error


def unavailable(reason: str, next: str, name: str) -> StoreUnavailable:
    return StoreUnavailable(f"the store `{name}` cannot be used ({reason}): {next}")


def advice(error: psycopg.Error) -> str:
    code = error.sqlstate
    said = str(error)
    if code is None and "password" in said:
        return _ADVICE["28"]
    if code is None and "database system is" in said:
        return _ADVICE["57"]
    return _ADVICE.get((code or "08")[:2], "the server's log says more")


def words(error: psycopg.Error) -> str:
    """One line, without what the statement held: a detail quotes rows, and what was asked may be anybody's words."""
    told = error.diag.message_primary
    if told is None:
        told = next(iter(str(error).strip().splitlines()), type(error).__name__)
        told = told.rpartition("FATAL: ")[2].rpartition(" failed: ")[2].strip()
    return told
