"""What a draft tells of bodies, decisions and the answer, whether it was packed or still refers to them.

In: a draft, as it is or packed. Out: its `Outline`, and `Told`, each part of it as it goes into the trace. Packed ones
are nearly all there are: what has come by before (decisions are the same for all requests of a kind) is not made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

import msgspec

from isthmus.errors import IsthmusError
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import Contents
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.happened import NO_BODY, asked_of, happened, trace_error, trace_item
from isthmus.observe.traces.outline import Asked, Outline, outline_of, told_of
from isthmus.observe.traces.packing import Packed
from isthmus.ports import Planned
from isthmus.ports.packed import encode
from isthmus.ports.traced import TracedBody, TracedDecision, TracedError, TracedItem

MOST_KNOWN: Final = 256
"""Lists of decisions that are remembered …"""
LONGEST_KNOWN: Final = 16_384
"""… and bytes of the longest."""
_NUMBERS: Final = (int, float)
_told: Final = attrgetter("path", "action", "reason", "code")
_sends, _value = attrgetter("sends"), attrgetter("effective_value")


class Told(msgspec.Struct, frozen=True):
    """What is only encoded may be JSON already."""

    asked: Asked
    request: TracedBody
    decisions: Any
    """`TracedDecision`s, or their JSON; likewise …"""
    diagnostics: Any
    """… as they stand in the answer, …"""
    calls: Any
    """… each asking of an upstream with what became of it, …"""
    tools: Any
    checks: Any
    output: Any
    """… the items of the answer, …"""
    usage: Any
    """… and what was used."""
    retries: int = 0
    answer: TracedBody = NO_BODY
    error: TracedError | None = None


# ── packed ───────────────────────────────────────────────────────────────────────────────────────────


class _Decided(msgspec.Struct):
    """As the plan has it."""

    path: str
    action: str
    reason: str = ""
    code: str = ""
    sends: dict[str, msgspec.Raw] = {}
    effective_value: Any = None


_decided: Final = msgspec.msgpack.Decoder(list[_Decided]).decode


class Reader:
    """By one thread only."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._known: dict[bytes, msgspec.Raw] = {}
        """Decisions as a plan has them → as a trace tells them."""

    def read(self, draft: Draft | Packed, contents: Contents) -> tuple[Outline, Told]:
        """`contents`: what of it may be kept as it is."""
        return self._open(draft) if isinstance(draft, Packed) else self._look(draft, contents)

    def _open(self, packed: Packed) -> tuple[Outline, Told]:
        alike = packed.open()
        items, messages, usage, *lines = packed.lines.splitlines()
        asked, sent = alike.request.whole(items), alike.sent.whole(messages)
        call = alike.upstream.call(packed.at, packed.accepted, self._bodies.read(sent))
        output = [traced_item(kind, len(line)) for kind, line in zip(alike.output, lines, strict=True)]
        return Outline(alike.same, packed.own), Told(
            told_of(asked),
            self._bodies.read(asked),
            self.decisions(bytes(alike.decisions)),
            alike.diagnostics,
            (call,),
            (),
            (),
            output,
            msgspec.Raw(usage),
        )

    def decisions(self, data: bytes) -> msgspec.Raw:
        known = self._known.get(data)
        if known is None:
            known = msgspec.Raw(encode(traced_decisions(_decided(data))))
            if len(data) <= LONGEST_KNOWN:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[data] = known
        return known

    # ── by reference ───────────────────────────────────────────────────────────────────────────────

    def _look(self, draft: Draft, contents: Contents) -> tuple[Outline, Told]:
        planned, ended, answered = draft.planned, draft.ended, draft.answered
        asked: Mapping[str, Any] = {} if planned is None else planned.asked
        plan, response = (None if planned is None else planned.plan), (None if ended is None else ended.response)
        failure = (ended and ended.failure) or (answered and answered.failure) or None
        size = getattr(plan, "size", 0)
        calls, tools, checks, retries = happened(draft, self._bodies, contents, size)
        return outline_of(draft), Told(
            told_of(asked),
            self._request(draft, planned, contents, size),
            () if plan is None else traced_decisions(plan.compatibility.decisions),
            _diagnostics(response, plan, failure),
            calls,
            tools,
            checks,
            () if response is None else list(map(trace_item, response["output"])),
            None if ended is None else ended.usage,
            retries,
            NO_BODY if response is None else contents.keep(NO_BODY, response),
            None if failure is None else trace_error(failure),
        )

    def _request(self, draft: Draft, planned: Planned | None, contents: Contents, size: int) -> TracedBody:
        """By its fields, as far as it was read; with the client's own bytes where these are wanted."""
        received = draft.received
        if planned is not None:
            whole = asked_of(planned)
            read = self._bodies.read(whole, size)
        else:
            whole, read = None, TracedBody(0 if received is None else received.size)
        if not contents.kept:
            return read
        if received is not None and received.raw is not None:
            return contents.keep_raw(read, received.raw)
        return contents.missed(read) if whole is None else contents.keep(read, whole)


def traced_item(kind: tuple[str, str | None, str | None], size: Any) -> TracedItem:
    type, status, name = kind
    return TracedItem(type, status or "", size, name or "")


def traced_decisions(decisions: Iterable[Any]) -> tuple[TracedDecision, ...]:
    """Of what takes effect only what is no text: figures."""
    decisions = list(decisions)
    figures = [value if isinstance(value, _NUMBERS) else None for value in map(_value, decisions)]
    return tuple(
        map(TracedDecision, *zip(*map(_told, decisions), strict=True), map(tuple, map(_sends, decisions)), figures)
    )


def _diagnostics(
    response: Mapping[str, Any] | None, plan: Any, failure: IsthmusError | None
) -> tuple[dict[str, Any], ...]:
    told = None if response is None else response.get("isthmus")
    if told is not None:
        return tuple(told["diagnostics"])
    if failure is not None and "diagnostics" in failure.metadata:
        return tuple(failure.metadata["diagnostics"])
    return () if plan is None else tuple([diagnostic.to_json() for diagnostic in plan.diagnostics])
