"""A trace as it is stored: its summary, and all the rest as bytes.

To encode a trace takes a few microseconds while it is in the processor's caches, and several times as long when it is
not any more. So whoever makes one packs it at once, and what waits to be written is bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from isthmus.ports.traced import NO_SUMMARY, Trace, TraceSummary

encode: Final = msgspec.json.Encoder().encode
_decode_summary: Final = msgspec.json.Decoder(TraceSummary).decode
_decode_trace: Final = msgspec.json.Decoder(Trace).decode


class PackedTrace(msgspec.Struct, frozen=True, gc=False):
    summary: TraceSummary
    head: bytes
    """The summary, encoded."""
    detail: bytes
    """All of it but the summary."""


def pack(trace: Trace) -> PackedTrace:
    return PackedTrace(trace.summary, encode(trace.summary), encode(replace(trace, summary=NO_SUMMARY)))


def pack_all(traces: Iterable[Trace]) -> list[PackedTrace]:
    return list(map(pack, traces))


def unpack(summary: TraceSummary, detail: bytes) -> Trace:
    return replace(_decode_trace(detail), summary=summary)


def unpack_summary(head: bytes) -> TraceSummary:
    return _decode_summary(head)
