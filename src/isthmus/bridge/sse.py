"""Server-sent events without IO: bytes in, the data of events out; an event in, one piece of bytes out.

Names and ids of events are not read: every dialect says in its data what it is. The parser takes bytes cut anywhere
(inside a line, a CRLF, a UTF-8 character), with LF, CRLF or CR line ends, comments and multi-line data. It works on
bytes throughout: nothing is decoded, and a line that comes in many reads is put together once, at its end. The writer
puts each event in one piece, because some readers reset their state per network chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import msgspec

from isthmus.errors import UpstreamFailed
from isthmus.protocol.events import Event
from isthmus.protocol.json import JsonObject, count_values
from isthmus.protocol.large import encode_sized

DONE: Final = b"data: [DONE]\n\n"
PING: Final = b": ping\n\n"
MAX_EVENT: Final = 32_000_000
"""Bound on one event: a server that never ends a line, or an event, must not fill our memory."""
MAX_VALUES: Final = 200_000
_LARGE: Final = 65_536
"""Bytes of an event whose values are counted before anybody reads it; those of a smaller one are soon read."""
_LINE: Final = 64
"""Bytes that a line takes besides its own: an event of empty lines is not empty."""

_BOM: Final = b"\xef\xbb\xbf"
_CR, _LF = b"\r\n"
"""As numbers: of a byte that is looked for as `bytes`, Python first makes an error, since it is no number."""
_encode_json: Final = msgspec.json.Encoder().encode
_encode_lines: Final = msgspec.json.Encoder().encode_lines
_type: Final = itemgetter("type")


class SseParser:
    """Feed it bytes; it answers with the data of the events that became whole."""

    __slots__ = ("_data", "_easy", "_fresh", "_line", "_max", "_size", "_values", "_waiting")

    def __init__(self, max_event: int = MAX_EVENT, max_values: int = MAX_VALUES) -> None:
        self._line: list[bytes] = []  # the pieces of a line that has not ended,
        self._waiting = 0  # and how long they are together
        self._data: list[bytes] = []
        self._fresh = True
        self._size = 0
        self._max = max_event
        self._values = max_values
        self._easy = min(max_event, _LARGE)

    def feed(self, chunk: bytes) -> list[bytes]:
        buffer = chunk
        if self._line:
            if not self._fresh and _LF not in chunk and _CR not in chunk and self._line[-1] != b"\r":
                self._wait(chunk)
                return []
            buffer = b"".join((*self._line, chunk))
            self._line, self._waiting = [], 0
        if self._fresh:
            if len(buffer) < 3 and _BOM.startswith(buffer):
                self._wait(buffer)
                return []
            buffer = buffer.removeprefix(_BOM)
            self._fresh = False
        held = b""
        if _CR in buffer:
            # A CR at the very end may be half of a CRLF: wait for its other half.
            held = b"\r" if buffer.endswith(b"\r") else b""
            buffer = buffer[: len(buffer) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        whole, _, tail = buffer.rpartition(b"\n\n")
        events = _plain_events(whole) if not self._data and len(whole) <= self._easy and _LF not in tail else []
        if not events:
            head, newline, tail = buffer.rpartition(b"\n")
            events = self._lines(head.split(b"\n")) if newline else []
        if tail or held:
            self._wait(tail)
            self._wait(held)
        return events

    def end(self) -> list[bytes]:
        """The stream is over: an event that lacks only its blank line is still given out."""
        rest, self._line = b"".join(self._line).rstrip(b"\r"), []
        return self._lines([rest, b""] if rest else [b""])

    def _wait(self, piece: bytes) -> None:
        if piece:
            self._line.append(piece)
            self._waiting += len(piece)
            self._bound(self._waiting + self._size)

    def _bound(self, size: int) -> None:
        if size > self._max:
            raise UpstreamFailed(f"the upstream sent an event of more than {self._max} bytes")

    def _lines(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                    if self._size > _LARGE and count_values(events[-1], self._values) > self._values:
                        raise UpstreamFailed(f"the upstream sent an event of more than {self._values:,} values")
                self._size, self._data = 0, []
            elif line.startswith(b"data:"):
                value = line[6:] if line[5:6] == b" " else line[5:]
                self._data.append(value)
                self._size += len(value) + _LINE
                self._bound(self._size)
            elif line == b"data":
                self._data.append(b"")
                self._size += _LINE
                self._bound(self._size)
        return events


def _plain_events(whole: bytes) -> list[bytes]:
    """The data of events of one line each, or of two with their names, as most streams come; else none. Counting is all
    that is needed: what has as many lines as that, and begins as it should, has no others."""
    if whole.startswith(b"data: "):
        if _LF not in whole:
            return [whole[6:]]
        events = whole[6:].split(b"\n\ndata: ")
        return events if whole.count(b"\n") == 2 * len(events) - 2 else []
    if whole.startswith(b"event: "):
        events = [event.partition(b"\ndata: ")[2] for event in whole.split(b"\n\n")]
        named = whole.count(b"\n\nevent: ") == len(events) - 1 and whole.count(b"\n") == 3 * len(events) - 2
        return events if named and b"" not in events else []
    return []


def encode_event(event: Event | JsonObject, size: int = 0) -> bytes:
    """One event as SSE; its `event:` line always equals its `type`. `size`: about, where that is much."""
    data = encode_sized(event, size) if size else _encode_json(event)
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), data)


def encode_events(events: Sequence[Event | JsonObject], size: int = 0) -> bytes:
    """A batch of them. Those of one type that stand together are written in one go: JSON has no line end of its own."""
    if size:
        return b"".join([encode_event(event, size) for event in events])
    if len(events) == 1:
        event = events[0]
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), _encode_json(event))
    told: list[bytes] = []
    for type, run in groupby(events, _type):
        begin = b"event: %b\ndata: " % type.encode()
        # A list: of any other iterable msgspec 0.22 would never let go.
        told += (begin, _encode_lines([*run])[:-1].replace(b"\n", b"\n\n" + begin), b"\n\n")
    return b"".join(told)


def encode_data(value: Any, size: int = 0) -> bytes:
    """One unnamed event (Chat Completions chunks have no `event:` line)."""
    return b"data: %b\n\n" % (encode_sized(value, size) if size else _encode_json(value))


def encode_all_data(values: Sequence[Any], size: int = 0) -> bytes:
    """A batch of these, likewise."""
    if size or len(values) < 2:
        return b"".join([encode_data(value, size) for value in values])
    return b"data: %b\n\n" % _encode_lines(values)[:-1].replace(b"\n", b"\n\ndata: ")
