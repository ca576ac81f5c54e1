"""`Content-Encoding` of request bodies: gzip, deflate and zstd, undone piece by piece.

In: a piece as it came. Out: pieces of at most `STEP` bytes, so that whoever counts them can stop long before a bomb has
grown. Anything else is refused before the body is read.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from isthmus.errors import RequestRefused

STEP: Final = 256 * 1024
"""Bytes that are decoded at once."""
_ZSTD_WINDOW: Final = 23
"""2^23 bytes: RFC 9659 asks no more of a receiver. A frame that wants a larger window would take that much memory."""


class _Inflater(Protocol):
    """What `zlib` and `zstd` have in common, after `_Zlib`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Decoder:
    """One body's encoding. `feed` every piece, then `end`."""

    def __init__(self, name: str, make: Callable[[], _Inflater], *, repeats: bool) -> None:
        """`repeats`: whether several of them may follow one another, as gzip members and zstd frames do."""
        self._name = name
        self._make = make
        self._repeats = repeats
        self._inner = make()
        self._begun = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        try:
            while data or self._begun:
                if self._inner.eof:
                    if not data:
                        return
                    if not self._repeats:
                        raise self._broken("something follows its end")
                    self._inner = self._make()
                self._begun = True
                decoded = self._inner.decompress(data, STEP)
                data = self._inner.unused_data if self._inner.eof else b""
                if decoded:
                    yield decoded
                elif not data:
                    return
        except RequestRefused:
            raise
        except Exception as error:  # zlib.error and ZstdError have no common parent, and the latter may not be loaded
            raise self._broken(str(error)) from error

    def end(self) -> None:
        """The body is over."""
        if self._begun and not self._inner.eof:
            raise self._broken("it is cut off")

    def _broken(self, why: str) -> RequestRefused:
        message = f"the request body is not {self._name}, as `Content-Encoding` says: {why}"
        return RequestRefused(message, code="invalid_body", param="Content-Encoding")


class _Zlib:
    """A `zlib` decompressor that keeps what it has not consumed, as the others do."""

    def __init__(self, bits: int) -> None:
        self._inner = zlib.decompressobj(bits)
        self._rest = b""

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        decoded = self._inner.decompress(self._rest + data, max_length)
        self._rest = self._inner.unconsumed_tail
        return decoded


class _Deflate(_Zlib):
    """With zlib's own head, as the standard says, or without one, as some clients send it."""

    def __init__(self) -> None:
        super().__init__(zlib.MAX_WBITS)
        self._first = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        if len(self._first) < 2:
            self._first += data
            if len(self._first) < 2:
                return b""
            data = self._first
            if data[0] & 0x0F != 8 or int.from_bytes(data[:2], "big") % 31:
                self._inner = zlib.decompressobj(-zlib.MAX_WBITS)
        return super().decompress(data, max_length)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _ZSTD_WINDOW})


_GZIP: Final = zlib.MAX_WBITS | 16
_DECODERS: Final[dict[str, Callable[[], Decoder]]] = {
    "gzip": lambda: Decoder("gzip", lambda: _Zlib(_GZIP), repeats=True),
    "x-gzip": lambda: Decoder("gzip", lambda: _Zlib(_GZIP), repeats=True),
    "deflate": lambda: Decoder("deflate", _Deflate, repeats=False),
    "zstd": lambda: Decoder("zstd", _zstd, repeats=True),
}


def find_decoder(named: str) -> Decoder | None:
    """The decoder for a `Content-Encoding`; `None` where there is nothing to undo."""
    name = named.strip().lower()
    if name in ("", "identity"):
        return None
    make = _DECODERS.get(name)
    if make is None:
        raise RequestRefused(
            f"request bodies in `{named}` cannot be read here; send them plain, or in gzip, deflate or zstd",
            code="unsupported_encoding",
            param="Content-Encoding",
            metadata={"accepts": "gzip, deflate, zstd"},
        )
    return make()
