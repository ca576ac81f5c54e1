"""What the traces of many requests have in common, and how one is made of that.

In: drafts that were packed. Out: their traces. Requests of one kind (the same fields, decided in the same way, to the
same model, with the same end) leave traces that are alike but for some forty values: times, tokens, ids, hashes of what
was said. So the second one of a kind leaves a `Shape`: its trace as a text with gaps; and of each further one only the
values are made, looked through and written. The store keeps the text once, and puts both together for whoever reads.

A shape is found by putting marks into the places of the values, and the trace together as any other (`record`). The
marks are drawn by chance, so that nobody can write one into a request.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from isthmus.observe.traces.bodies import MOST_PIECES, Bodies, Rest
from isthmus.observe.traces.outline import Outline, Own, Same, told_of
from isthmus.observe.traces.packing import Body, Packed
from isthmus.observe.traces.record import assemble, has_opening, thread_of
from isthmus.observe.traces.told import Reader, Told, traced_item
from isthmus.ports.packed import Filed, Kind, PackedTrace, Pattern, encode, kind_of
from isthmus.ports.traced import TracedBody

MOST_SHAPES: Final = 512
"""That are remembered, …"""
MOST_SHAPE_BYTES: Final = 4_000_000
"""… bytes of what they are known by and of their texts, …"""
MOST_ONCE: Final = 4_096
"""… and requests of which no second one has come."""
_encode_lines: Final = msgspec.json.Encoder().encode_lines
_THREAD, _SIZE, _SAID, _AT, _SENT_SIZE, _SENT_SAID, _ACCEPTED, _OUTPUT, _USAGE = (
    *("thread", "request.bytes", "request.pieces", "call.at", "call.bytes", "call.pieces", "call.accepted"),
    *("output", "usage"),
)
"""Values of a trace beside those of its outline."""
_HEAD: Final = (
    *("id", "at", "ended_at", "run", "client_id", "spent", "made", "cached", "thought", "price", "total"),
    *("first_token", "first_byte", "overhead", _THREAD, "size"),
)
_DETAIL: Final = (
    *("body", "parse", "plan", "first_byte", "first_token", "settled", "seconds", "total"),
    *(_SIZE, _SAID, _AT, _SENT_SIZE, _SENT_SAID, _ACCEPTED, _OUTPUT, _USAGE),
    *("batches", "events", "marks", "traceparent"),
)
"""What goes into the gaps of both texts: all in the order in which `Shape.make` lists them; of the answer, the size of
each of its items."""


class Shape(msgspec.Struct, frozen=True):
    pattern: Pattern
    same: Same
    kind: Kind
    previous: str
    thread: str
    """That of them all; empty: each has its own, …"""
    opens: bool
    """… by its first words."""
    name: str
    """Of the field that holds what is said in the request, …"""
    size: int
    """… and its size without that; likewise …"""
    sent_name: str
    sent_size: int
    """… of what was sent."""
    room: int
    """For so many messages, or items."""
    weight: int
    """Bytes of both texts."""

    def make(self, packed: Packed, bodies: Bodies) -> PackedTrace | None:
        same, own, count, sent_count = self.same, packed.own, packed.count, packed.sent_count
        if count > self.room or sent_count > self.room:
            return None
        items, messages, usage, *output = packed.lines.split(b"\n")
        del output[-1]  # behind the last line end
        said, opening = bodies.read_said(self.name, count, items)
        sent_said, _ = bodies.read_said(self.sent_name, sent_count, messages)
        thread = self.thread or (f"opening:{opening}" if self.opens and opening else own.run)
        head = [
            own.id,
            own.at,
            own.ended_at,
            own.run,
            own.client_id,
            own.spent,
            own.made,
            own.cached,
            own.thought,
            own.price,
            own.total,
            own.first_token,
            own.first_byte,
            own.overhead,
            thread,
            own.size,
        ]
        detail = [
            own.body,
            own.parse,
            own.plan,
            own.first_byte,
            own.first_token,
            own.settled,
            own.seconds,
            own.total,
            self.size + len(items),
            said,
            packed.at,
            self.sent_size + len(messages),
            sent_said,
            packed.accepted,
            *map(len, output),
            msgspec.Raw(usage),
            own.batches,
            own.events,
            own.marks,
            own.traceparent,
        ]
        filed = Filed(
            self.kind,
            own.id,
            own.ended_at,
            own.run,
            same.owner,
            self.previous,
            thread,
            own.spent,
            own.made,
            own.cached,
            own.price,
            0,
            same.degraded,
            same.ignored,
            own.total,
            own.first_token,
        )
        return PackedTrace(filed, _encode_lines(head), _encode_lines(detail), self.pattern)


class Shapes:
    """By one thread only."""

    def __init__(self, bodies: Bodies, reader: Reader) -> None:
        self._bodies, self._reader = bodies, reader
        self._known: dict[bytes, Shape | None] = {}
        """`None`: there is none for such a one."""
        self._held = 0
        """Bytes."""
        self._once: set[int] = set()

    def make(self, packed: Packed) -> PackedTrace | None:
        """`None`: it has no shape, or none yet."""
        shape = self._known.get(packed.alike) or self._learn(packed)
        return None if shape is None else shape.make(packed, self._bodies)

    def _learn(self, packed: Packed) -> Shape | None:
        """From the second one on: of the first nobody knows whether another will come."""
        key = packed.alike
        once = hash(key)
        if once not in self._once:
            if len(self._once) >= MOST_ONCE:
                self._once.clear()
            self._once.add(once)
            return None
        if key in self._known:
            return None
        shape = self._find(packed)
        size = len(key) + (0 if shape is None else shape.weight)
        if len(self._known) >= MOST_SHAPES or self._held + size > MOST_SHAPE_BYTES:
            self._known.clear()
            self._held = 0
        self._known[key] = shape
        self._held += size
        return shape

    def _find(self, packed: Packed) -> Shape | None:
        alike, marks = packed.open(), _Marks()
        request, sent = self._read(alike.request), self._read(alike.sent)
        if request is None or sent is None:
            return None
        at = marks.at
        told = Told(
            asked=told_of(alike.request.fields),
            request=TracedBody(),
            decisions=self._reader.decisions(bytes(alike.decisions)),
            diagnostics=alike.diagnostics,
            calls=(alike.upstream.call(at(_AT), at(_ACCEPTED), _around(sent, at(_SENT_SIZE), at(_SENT_SAID))),),
            tools=(),
            checks=(),
            output=[traced_item(kind, at(_OUTPUT)) for kind in alike.output],
            usage=at(_USAGE),
        )
        outline = Outline(alike.same, packed.own)
        thread = thread_of(outline, told, self._bodies)
        told = replace(told, request=_around(request, at(_SIZE), at(_SAID)))
        marked = Outline(alike.same, Own(*map(at, Own.__struct_fields__)))
        summary, trace = assemble(marked, told, at(_THREAD), "metadata")
        head, detail = encode(summary), encode(trace)
        before, after = _DETAIL[: _DETAIL.index(_OUTPUT)], _DETAIL[_DETAIL.index(_OUTPUT) + 1 :]
        return Shape(
            pattern=Pattern(
                marks.part(head, _HEAD), marks.part(detail, (*before, *[_OUTPUT] * len(alike.output), *after))
            ),
            same=alike.same,
            kind=kind_of(summary),
            previous=summary.previous,
            thread="" if thread == packed.own.run else thread,
            opens=has_opening(outline, told.asked),
            name=alike.request.name,
            size=request.size,
            sent_name=alike.sent.name,
            sent_size=sent.size,
            room=MOST_PIECES - 1 - max(request.count, sent.count),
            weight=len(head) + len(detail),
        )

    def _read(self, body: Body) -> Rest | None:
        """`None`: nothing is said in it, or it has very many fields."""
        return self._bodies.read_rest(body.fields, body.name) if body.name else None


def _around(body: Rest, size: Any, said: Any) -> TracedBody:
    return TracedBody(size, (*body.before, said, *body.after))


class _Marks:
    """JSON that stands for a value until it comes."""

    def __init__(self) -> None:
        self._word = secrets.token_hex(16)

    def at(self, name: str) -> Any:
        return msgspec.Raw(f'"{self._word} {name}"'.encode())

    def part(self, text: bytes, names: Sequence[str]) -> tuple[bytes, ...]:
        """The text around the values; `names`: of these, as they follow each other."""
        first, *rest = re.split(rf'"{self._word} ([^"]+)"', text.decode())
        assert tuple(rest[::2]) == names, "the fields of a trace stand in another order"
        return tuple([each.encode() for each in (first, *rest[1::2])])
