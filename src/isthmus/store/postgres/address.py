"""The server's address: what libpq understands, and how it may be named in words.

In: `store.url`. Out: the URL as it is, and a name without password and without parameters, which is what logs, errors
and people see. What libpq says of a URL that it does not understand is not repeated: it quotes pieces of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from isthmus.errors import ConfigError


@dataclass(frozen=True)
class Address:
    url: str

    def __post_init__(self) -> None:
        try:
            conninfo_to_dict(self.url)
        except psycopg.Error as error:
            raise ConfigError(
                "`store.url` is no URL that PostgreSQL understands: write `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`,"
                " with parameters of libpq behind `?`, and what is special in a password as `%XX`",
                param="store.url",
            ) from error.with_traceback(None)

    @cached_property
    def name(self) -> str:
        """Without its user's password, and without parameters, which may hold one too."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
