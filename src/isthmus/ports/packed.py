"""A trace as it is stored: what it is filed by, and all of it as bytes.

To encode a trace takes a few microseconds while it is in the processor's caches, and several times as long when it is
not any more. So whoever makes one packs it at once, and what waits to be written is bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

import msgspec
from msgspec.structs import replace

from isthmus.ports.traced import NO_SUMMARY, Trace, TraceSummary

KIND: Final = ("owner", "key", "client", "door", "provider", "model", "outcome", "code", "changed")
Kind = tuple[str, str, str, str, str, str, str, str, bool]
"""What lists are filtered and totals grouped by."""
encode: Final = msgspec.json.Encoder().encode
_decode_summary: Final = msgspec.json.Decoder(TraceSummary).decode
_decode_trace: Final = msgspec.json.Decoder(Trace).decode
_named: Final = attrgetter(*KIND[:-1])


class Filed(msgspec.Struct, frozen=True, gc=False):
    """Of a summary what a store looks at when it takes a trace: by what it is found, and what it adds to sums."""

    kind: Kind
    id: str
    ended_at: float
    response: str
    owner: str
    previous: str
    thread: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None
    retries: int
    degraded: int
    ignored: int
    total: float
    first_token: float | None


_filed: Final = attrgetter(*(name for name in Filed.__struct_fields__ if name != "kind"))


class Pattern(msgspec.Struct, frozen=True, gc=False):
    """What many traces have in common: two texts with gaps between their pieces."""

    head: tuple[bytes, ...]
    detail: tuple[bytes, ...]


class PackedTrace(msgspec.Struct, frozen=True, gc=False):
    filed: Filed
    head: bytes
    """The summary, encoded; …"""
    detail: bytes
    """… all of it but the summary; …"""
    pattern: Pattern | None = None
    """… or, where there is one, of both what goes into the gaps of their text, a line each."""


def kind_of(summary: TraceSummary) -> Kind:
    return (*_named(summary), bool(summary.degraded or summary.ignored))


def file_by(summary: TraceSummary) -> Filed:
    return Filed(kind_of(summary), *_filed(summary))


def pack(trace: Trace) -> PackedTrace:
    summary = trace.summary
    return PackedTrace(file_by(summary), encode(summary), encode(replace(trace, summary=NO_SUMMARY)))


def fill(texts: Sequence[bytes], values: bytes) -> bytes:
    """No JSON has a line end in it."""
    filled = [b""] * (2 * len(texts) - 1)
    filled[::2] = texts
    filled[1::2] = values.split(b"\n")[: len(texts) - 1]
    return b"".join(filled)


def plain(trace: PackedTrace) -> PackedTrace:
    """The same without a pattern."""
    pattern = trace.pattern
    if pattern is None:
        return trace
    return PackedTrace(trace.filed, fill(pattern.head, trace.head), fill(pattern.detail, trace.detail))


def pack_all(traces: Iterable[Trace]) -> list[PackedTrace]:
    return list(map(pack, traces))


def unpack(summary: TraceSummary, detail: bytes) -> Trace:
    return replace(_decode_trace(detail), summary=summary)


def unpack_summary(head: bytes) -> TraceSummary:
    return _decode_summary(head)
