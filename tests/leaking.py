"""Where secrets must not be: what a client was sent, every log record down to debug, every byte on disk.

with listening() as said: ...   # all that any logger says meanwhile, tracebacks included
assert_silent(SECRETS, client=reply.body, log=said.text, disk=flow.stored_bytes())
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, quote_plus

PIECE = 8
"""So much of a secret, from its beginning or its end, is already too much."""


class Said(logging.Handler):
    """Every record, formatted as a plain handler would."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(f"{self.format(record)} {record.args!r}")

    @property
    def text(self) -> str:
        return "\n".join(self._lines)


@contextmanager
def listening() -> Iterator[Said]:
    """Hear every logger, whatever the command line or another test has set."""
    said = Said()
    loggers = [logging.getLogger(name) for name in ("", "isthmus", "aiohttp", "asyncio")]
    before = [(logger, logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.addHandler(said)
    try:
        yield said
    finally:
        for logger, level, propagate in before:
            logger.removeHandler(said)
            logger.setLevel(level)
            logger.propagate = propagate


def spellings(secret: str) -> set[str]:
    """The secret as it may stand in a text: plain, in a URL, in JSON, in a `repr`."""
    encoded = quote(secret, safe="")
    plain = {secret, encoded, encoded.lower(), quote(secret), quote_plus(secret), quote(encoded, safe="")}
    return plain | {json.dumps(secret)[1:-1], repr(secret)[1:-1]}


def assert_silent(secrets: Iterable[str], **places: str | bytes) -> None:
    """No place holds a secret, nor the beginning or the end of one."""
    for name, held in places.items():
        text = held.decode("utf-8", "replace") if isinstance(held, bytes) else held
        for secret in secrets:
            for spelled in spellings(secret):
                for piece in (spelled, spelled[:PIECE], spelled[-PIECE:]):
                    assert piece not in text, f"{name} shows {piece!r}: {_around(text, piece)}"


def everything_of(error: BaseException | None) -> str:
    """All that a program can read off an exception: words, facts, and what it was caused by."""
    told: list[str] = []
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        facts: Any = getattr(error, "__dict__", {})
        told.append(f"{error} {error!r} {error.args!r} {facts!r}")
        error = error.__cause__ or error.__context__
    return "\n".join(told)


def _around(text: str, piece: str) -> str:
    at = text.index(piece)
    return repr(text[max(0, at - 80) : at + 80])
