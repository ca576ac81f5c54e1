"""The key of our reasoning envelopes in the database: the same for every replica, whichever asks first."""

from __future__ import annotations

import secrets
from contextlib import closing
from typing import Final

import psycopg

from isthmus.errors import ConfigError
from isthmus.store.postgres.connect import Options
from isthmus.store.postgres.faults import explain
from isthmus.store.postgres.medium import Medium
from isthmus.store.postgres.migrations import migrate

_NAME: Final = "envelope_key"
_SIZE: Final = 32
_SHORTEST: Final = 16


def envelope_key(options: Options) -> bytes:
    """The key of this database; made, with the tables, where there is none yet."""
    with closing(Medium(options).connect()) as connection:
        migrate(connection, options)
        try:
            found = connection.execute("SELECT value FROM secrets WHERE name = %s", (_NAME,)).fetchone()
            if found is None:
                # Of two that start at once one is first; the other one then finds what that has made.
                made = secrets.token_bytes(_SIZE)
                connection.execute("INSERT INTO secrets VALUES (%s, %s) ON CONFLICT DO NOTHING", (_NAME, made))
                found = connection.execute("SELECT value FROM secrets WHERE name = %s", (_NAME,)).fetchone()
        except psycopg.Error as error:
            raise explain(error, options.address.name) from error
    assert found is not None
    key = bytes(found[0])
    if len(key) < _SHORTEST:
        raise ConfigError(
            f"the key of the envelopes in `{options.address.name}` is none: delete the row `{_NAME}` of the table"
            " `secrets` to get a new one, and old reasoning is not understood"
        )
    return key
