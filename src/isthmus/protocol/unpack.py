"""`Content-Encoding` undone piece by piece: gzip, deflate and zstd.

In: a piece as it came. Out: pieces of at most `step` bytes, so that whoever counts them can stop long before a bomb has
grown. What is not packed as it says is a `ValueError`.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

_ZSTD_WINDOW: Final = 23
"""2^23 bytes: RFC 9659 asks no more of a receiver. A frame that wants a larger window would take that much memory."""


class _Inflater(Protocol):
    """What `zlib` and `zstd` have in common, after `_Zlib`."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class Unpacker:
    """One body's encoding. `feed` every piece, then `end`."""

    def __init__(self, name: str, make: Callable[[], _Inflater], step: int, *, repeats: bool) -> None:
        """`repeats`: whether several of them may follow one another, as gzip members and zstd frames do."""
        self.name = name
        self._make = make
        self._step = step
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
                        raise ValueError("something follows its end")
                    self._inner = self._make()
                self._begun = True
                decoded = self._inner.decompress(data, self._step)
                data = self._inner.unused_data if self._inner.eof else b""
                if decoded:
                    yield decoded
                elif not data:
                    return
        except ValueError:
            raise
        except Exception as error:  # zlib.error and ZstdError have no common parent, and the latter may not be loaded
            raise ValueError(str(error)) from error

    def end(self) -> None:
        """The body is over."""
        if self._begun and not self._inner.eof:
            raise ValueError("it is cut off")


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
    """With zlib's own head, as the standard says, or without one, as some send it."""

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


def _gzip() -> _Inflater:
    return _Zlib(zlib.MAX_WBITS | 16)


_KINDS: Final[dict[str, tuple[str, Callable[[], _Inflater], bool]]] = {
    "gzip": ("gzip", _gzip, True),
    "x-gzip": ("gzip", _gzip, True),
    "deflate": ("deflate", _Deflate, False),
    "zstd": ("zstd", _zstd, True),
}
PLAIN: Final = ("", "identity")


def find_unpacker(named: str, step: int) -> Unpacker | None:
    """Of a `Content-Encoding`; `None` where nothing is packed, or nobody here can unpack it (see `can_unpack`)."""
    kind = _KINDS.get(named.strip().lower())
    if kind is None:
        return None
    name, make, repeats = kind
    return Unpacker(name, make, step, repeats=repeats)


def can_unpack(named: str) -> bool:
    name = named.strip().lower()
    return name in PLAIN or name in _KINDS
