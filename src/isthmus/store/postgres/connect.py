"""One connection, ready for use: its bounds are set, and its tables are found.

`durability` decides what `save` has made sure of when it returns:

- `process`: the response survives anything that happens to gateways, to the server and to its machine's power: each
  save waits for the server's disk (`synchronous_commit = local`). With less (`off`) a single backend that is killed
  would take with it what others were told is saved.
- `power`: it survives the loss of that machine as well, where the server has synchronous standbys: each save waits for
  those, too (`synchronous_commit = on`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg.pq import Format
from psycopg.rows import TupleRow

from isthmus.store.postgres.address import Address
from isthmus.store.sqlite.connect import Durability

Connection = psycopg.Connection[TupleRow]

_COMMIT: Final[dict[str, str]] = {"process": "local", "power": "on"}
_KEEPALIVES: Final[dict[str, Any]] = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""A server that vanished without a word is noticed in a minute, also by who only listens."""


@dataclass(frozen=True, slots=True)
class Options:
    address: Address
    schema: str = "isthmus"
    durability: Durability = "process"
    connect_timeout: float = 5.0
    statement_timeout: float = 30.0


class _Cursor(psycopg.Cursor[TupleRow]):
    """Asks for what is stored as it is: as text, bytes would travel as digits."""

    def __init__(self, connection: Any, *given: Any, **named: Any) -> None:
        super().__init__(connection, *given, **named)
        self.format = Format.BINARY


def connect(options: Options) -> Connection:
    connection = psycopg.connect(
        options.address.url,
        autocommit=True,
        cursor_factory=_Cursor,
        connect_timeout=max(2, round(options.connect_timeout)),  # libpq counts in seconds, and takes 1 for 2
        tcp_user_timeout=round(options.statement_timeout * 2000),
        fallback_application_name="isthmus",
        **_KEEPALIVES,
    )
    try:
        milliseconds = f"{round(options.statement_timeout * 1000)}ms"
        settings = {
            "search_path": _quoted(options.schema),
            "statement_timeout": milliseconds,
            "lock_timeout": milliseconds,
            # A process that is stopped in the middle of a step holds its locks no longer than this.
            "idle_in_transaction_session_timeout": milliseconds,
            "synchronous_commit": _COMMIT[options.durability],
            "client_encoding": "UTF8",
        }
        told = ", ".join(["set_config(%s, %s, false)"] * len(settings))
        connection.execute(f"SELECT {told}", [word for pair in settings.items() for word in pair])
    except BaseException:
        connection.close()
        raise
    return connection


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
