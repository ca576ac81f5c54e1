"""An answer whose head is there, and what has come of its body.

In: headers and pieces as the connection read them. Out: bytes, never more than a piece at a time, unpacked where they
were packed. Worth knowing: with its last byte it lets go of its connection, which serves somebody else from then on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from isthmus.protocol.unpack import Unpacker, find_unpacker
from isthmus.upstream.trouble import malformed

if TYPE_CHECKING:
    from isthmus.upstream.lean.line import Line

MAX_PIECE: Final = 16 * 1024
"""Most bytes that are handed on at once; as deltas, in Python objects, they take many times as much."""
_NO_BODY: Final = (204, 304)


class Answer:
    __slots__ = (
        "_line",
        "_pieces",
        "_unpacked",
        "_unpacker",
        "bare",
        "cut",
        "ended",
        "error",
        "headers",
        "status",
        "until_closed",
    )
    headers: dict[str, str]
    until_closed: bool
    """Whether its body ends only with the connection."""

    def __init__(self, line: Line, pieces: list[bytes], *, bare: bool) -> None:
        self._line: Line | None = line
        self._pieces = pieces
        """The connection's own, while it arrives."""
        self._unpacker: Unpacker | None = None
        self._unpacked: Iterator[bytes] | None = None
        self.bare = bare
        self.cut: list[bytes] = []
        """The rest of a large piece, its beginning last."""
        self.status = 0
        """0: nothing has come yet."""
        self.ended = False
        self.error: Exception | None = None

    # ── what the connection tells ──────────────────────────────────────────────────────────────────────

    def begin(self, status: int, headers: Mapping[bytes, bytes]) -> None:
        self.status = status
        self.headers = named = {
            name.decode("latin-1").lower(): value.decode("utf-8", "surrogateescape").strip()
            for name, value in headers.items()
        }
        self.until_closed = "content-length" not in named and "transfer-encoding" not in named
        if "content-encoding" in named and not self.bare and status not in _NO_BODY:
            self._unpacker = find_unpacker(named["content-encoding"], MAX_PIECE)

    def end(self) -> None:
        """All of it is here."""
        self.ended = True
        self._leave()

    def fail(self, error: Exception) -> None:
        """No more of it will come; what has come is read before that is told."""
        line, self.error = self._line, error
        self._leave()
        if line is not None:
            line.drop()

    def _leave(self) -> None:
        if self._line is not None:
            self._line = None
            pieces = self._pieces
            self._pieces = pieces.copy()
            pieces.clear()

    # ── what its reader asks ───────────────────────────────────────────────────────────────────────────

    @property
    def kind(self) -> str:
        """The media type, without what follows it."""
        told = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return told if told.count("/") == 1 else "application/octet-stream"

    @property
    def over(self) -> bool:
        """Whether all of it was taken."""
        return self.ended and not self._pieces and not self.cut and self._unpacked is None and self.error is None

    def take(self, *, packed: bool = False) -> bytes:
        """What has come, without a wait; empty where nothing has. Raises what ended it, behind the last of it.
        `packed`: as it came."""
        if self._unpacker is not None and not packed:
            return self._unpack(self._unpacker)
        pieces, cut = self._pieces, self.cut
        if cut:
            data = cut.pop()
        elif pieces:
            data = pieces.pop()
            if pieces:
                data = b"".join((*pieces, data))
                pieces.clear()
            if len(data) > MAX_PIECE:
                self.cut = cut = [data[start : start + MAX_PIECE] for start in range(0, len(data), MAX_PIECE)][::-1]
                data = cut.pop()
        elif self.error is not None:
            raise self.error
        else:
            return b""
        line = self._line
        if line is not None and not cut:
            line.held = 0
            if line.paused:
                line.resume()
        return data

    def news(self) -> Awaitable[None] | None:
        """Done when there may be something to take; `None`: there is, or nothing more will come."""
        line = self._line
        return None if line is None or self._pieces or self.cut or self._unpacked is not None else line.news()

    def _unpack(self, unpacker: Unpacker) -> bytes:
        """A piece of what was packed may become many: each is made when it is asked for."""
        try:
            while True:
                if self._unpacked is None:
                    data = self.take(packed=True)
                    if not data:
                        if self.ended:
                            unpacker.end()
                        return b""
                    self._unpacked = unpacker.feed(data)
                piece = next(self._unpacked, b"")
                if piece:
                    return piece
                self._unpacked = None
        except ValueError:
            self.error = malformed("its answer is compressed, and cannot be unpacked")
            self._unpacker = None
            self._pieces, self.cut = [], []
            raise self.error from None

    def close(self) -> None:
        """Of one that was left early nothing more may arrive."""
        line, self._line, self.ended = self._line, None, True
        if line is not None:
            line.drop()
