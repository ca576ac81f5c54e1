"""What a draft tells of bodies, decisions and the answer, whether it was packed or still refers to them.

In: a draft. Out: `Told`, each part of it as it goes into the trace. Packed ones are nearly all there are: what has come
by before (decisions are the same for all requests of a kind) is not made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.errors import IsthmusError
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import Contents
from isthmus.observe.traces.draft import Asked, Draft, Packed
from isthmus.observe.traces.packing import NO_BODY, asked_of, told_of, trace_item
from isthmus.ports import Planned, Sent
from isthmus.ports.packed import encode
from isthmus.ports.traced import TracedBody, TracedCall, TracedDecision

MOST_KNOWN: Final = 256
"""Lists of decisions that are remembered …"""
LONGEST_KNOWN: Final = 16_384
"""… and bytes of the longest."""
_NUMBERS: Final = (int, float)
_told: Final = attrgetter("path", "action", "reason", "code")
_sends, _value = attrgetter("sends"), attrgetter("effective_value")


class Told(msgspec.Struct, frozen=True):
    asked: Asked
    request: TracedBody
    sent: Sequence[TracedBody]
    """What went out, in the order of the `Sent` among the steps; …"""
    calls: tuple[TracedCall, ...]
    """… or what became of these steps, where they are gone."""
    decisions: Any
    """A list of `TracedDecision`, or its JSON; likewise …"""
    diagnostics: Any
    """… as they stand in the answer, …"""
    output: Any
    """… `TracedItem`s, …"""
    usage: Any
    """… and what was used."""


# ── packed ───────────────────────────────────────────────────────────────────────────────────────────


class _Decided(msgspec.Struct):
    """As the plan has it."""

    path: str
    action: str
    reason: str
    code: str
    sends: dict[str, msgspec.Raw]
    effective_value: Any


_decided: Final = msgspec.json.Decoder(list[_Decided]).decode


class Reader:
    """By one thread only."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._known: dict[bytes, msgspec.Raw] = {}
        """Decisions as a plan has them → as a trace tells them."""

    def read(self, draft: Draft, contents: Contents) -> Told:
        """`contents`: what of it may be kept as it is."""
        return self._look(draft, contents) if draft.packed is None else self._open(draft.packed)

    def _open(self, packed: Packed) -> Told:
        read = self._bodies.read_packed
        return Told(
            packed.asked,
            read(packed.request),
            (),
            (replace(packed.call, body=read(packed.sent)),),
            self._decisions(packed.decisions),
            msgspec.Raw(packed.diagnostics) if packed.diagnostics else (),
            packed.output,
            msgspec.Raw(packed.usage),
        )

    def _decisions(self, data: bytes) -> msgspec.Raw:
        known = self._known.get(data)
        if known is None:
            known = msgspec.Raw(encode(traced_decisions(_decided(data))))
            if len(data) <= LONGEST_KNOWN:
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[data] = known
        return known

    # ── by reference ───────────────────────────────────────────────────────────────────────────────

    def _look(self, draft: Draft, contents: Contents) -> Told:
        planned, ended, answered = draft.planned, draft.ended, draft.answered
        asked: Mapping[str, Any] = {} if planned is None else planned.asked
        plan, response = (None if planned is None else planned.plan), (None if ended is None else ended.response)
        failure = (ended and ended.failure) or (answered and answered.failure) or None
        size = getattr(plan, "size", 0)
        steps = () if ended is None else ended.steps
        return Told(
            told_of(asked),
            self._request(draft, planned, contents, size),
            [self._sent(step.body, contents, size) for _, step in steps if type(step) is Sent],
            (),
            () if plan is None else traced_decisions(plan.compatibility.decisions),
            _diagnostics(response, plan, failure),
            () if response is None else tuple(map(trace_item, response["output"])),
            None if ended is None else ended.usage,
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

    def _sent(self, body: Mapping[str, Any] | None, contents: Contents, size: int) -> TracedBody:
        return NO_BODY if body is None else contents.keep(self._bodies.read(body, size), body)


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
