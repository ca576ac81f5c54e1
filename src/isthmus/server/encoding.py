"""`Content-Encoding` of request bodies: gzip, deflate and zstd, undone piece by piece.

In: a piece as it came. Out: pieces of at most `STEP` bytes, so that whoever counts them can stop long before a bomb has
grown. Anything else is refused before the body is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isthmus.errors import RequestRefused
from isthmus.protocol.unpack import Unpacker, can_unpack, find_unpacker

STEP: Final = 256 * 1024
"""Bytes that are decoded at once."""


class Decoder:
    """One body's encoding. `feed` every piece, then `end`."""

    def __init__(self, unpacker: Unpacker) -> None:
        self._unpacker = unpacker

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            yield from self._unpacker.feed(data)
        except ValueError as error:
            raise self._broken(error) from error

    def end(self) -> None:
        """The body is over."""
        try:
            self._unpacker.end()
        except ValueError as error:
            raise self._broken(error) from error

    def _broken(self, why: ValueError) -> RequestRefused:
        message = f"the request body is not {self._unpacker.name}, as `Content-Encoding` says: {why}"
        return RequestRefused(message, code="invalid_body", param="Content-Encoding")


def find_decoder(named: str) -> Decoder | None:
    """The decoder for a `Content-Encoding`; `None` where there is nothing to undo."""
    unpacker = find_unpacker(named, STEP)
    if unpacker is not None:
        return Decoder(unpacker)
    if not can_unpack(named):
        raise RequestRefused(
            f"request bodies in `{named}` cannot be read here; send them plain, or in gzip, deflate or zstd",
            code="unsupported_encoding",
            param="Content-Encoding",
            metadata={"accepts": "gzip, deflate, zstd"},
        )
    return None
