"""The head of a request, as bytes.

In: an address, the headers that all requests to it share, and those of one. Out: what stands before the body. Worth
knowing: what is shared is written once; nothing that would end a line early leaves here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from isthmus.upstream.lean.address import Address
from isthmus.upstream.trouble import Trouble

ACCEPTED: Final = "gzip, deflate, zstd"
_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NO_VALUE: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OURS: Final = frozenset({"content-length", "transfer-encoding"})
"""What frames a request: nobody else may say it."""
_BODILESS: Final = frozenset({"GET", "HEAD", "DELETE", "OPTIONS", "TRACE"})


class Head:
    """What all requests of one kind, to one address, have in common."""

    __slots__ = ("_method", "_names", "_shared", "_table", "address", "bare")

    def __init__(self, method: str, address: Address, headers: Mapping[str, str]) -> None:
        self.address = address
        self.bare = method == "HEAD"
        """Whether an answer has no body, whatever it says of it."""
        self._method = method
        given = {name.lower() for name in headers}
        own = {"host": address.host, "accept": "*/*", "accept-encoding": ACCEPTED}
        if address.authorization:
            own["authorization"] = address.authorization
        self._table = {name: value for name, value in own.items() if name not in given} | dict(headers)
        self._names = frozenset(map(str.lower, self._table))
        self._shared = self._begin(self._table)

    def write(self, more: Mapping[str, str] | None, size: int | None) -> bytes:
        """`size`: of the body, `None` where there is none; `more`: they replace what is shared under their names."""
        shared = self._shared
        if more:
            names = {name.lower() for name in more}
            if names.isdisjoint(self._names):
                shared += _lines(more)
            else:
                kept = {name: value for name, value in self._table.items() if name.lower() not in names}
                shared = self._begin({**kept, **more})
        if size is None:
            return shared + (b"\r\n" if self._method in _BODILESS else b"content-length: 0\r\n\r\n")
        return b"%bcontent-length: %d\r\n\r\n" % (shared, size)

    def _begin(self, table: Mapping[str, str]) -> bytes:
        if not _NAME.fullmatch(self._method):
            raise Trouble("cannot be asked: its method is not one", "server_error")
        return f"{self._method} {self.address.target} HTTP/1.1\r\n".encode("ascii") + _lines(table)


def _lines(headers: Mapping[str, str]) -> bytes:
    lines = []
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or _NO_VALUE.search(value):
            shown = name if _NAME.fullmatch(name) else "?"
            raise Trouble(f"cannot be asked: its header `{shown}` holds what no header may hold", "server_error")
        if name.lower() not in _OURS:
            lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("utf-8")
