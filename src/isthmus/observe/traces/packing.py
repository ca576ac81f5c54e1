"""A draft of a usual request → what its trace is made of: figures, and two pieces of bytes.

In: a draft that is over. Out: `Packed`, made in a few calls while all of it is at hand, which holds on to nothing else
of the request; `None` where it is not small, or something went wrong. The thread makes the trace of that, since it
makes many in a row. On the loop the same takes several times as long, because nothing that it needs stays in the
processor's caches from one request to the next; and so it does in the thread, if all that it reads was left behind by
others long ago. What may take longer (a long body, a long history, what tools have said, all content) is not packed.

What is alike in many requests is told apart from what is said in each: the thread knows it again by its bytes, and
makes next to nothing of it anew (`shapes`).
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from isthmus.bridge.tools.credentials import showable_body
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.outline import Own, Same, own_of, same_of
from isthmus.ports import Accepted, Sent
from isthmus.ports.facts import Asking
from isthmus.ports.traced import TracedBody, TracedCall
from isthmus.protocol.response import weigh_response

SMALL: Final = 65_536
"""Bytes that a draft may hold on to, and characters of its answer."""
_USUAL: Final = 2
"""What happens to a request that is asked once: it is sent, and accepted."""
_encode_lines: Final = msgspec.json.Encoder().encode_lines
_pack: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class Upstream(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The one asking of an upstream."""

    provider: str
    model: str
    attempt: int
    why: Asking
    key: str

    def call(self, at: float, accepted: float, body: TracedBody) -> TracedCall:
        return TracedCall(self.provider, self.model, self.attempt, self.why, at, body, accepted, key=self.key)


class Body(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """But for what is said in it."""

    name: str
    """Of the field that holds what is said; empty: there is none, and all of it is here."""
    fields: dict[str, Any]
    """With a 0 in the place of that."""

    def whole(self, said: bytes) -> dict[str, Any]:
        return {**self.fields, self.name: _decode(said)} if self.name else self.fields


class Alike(msgspec.Struct, frozen=True, array_like=True):
    """What many requests have in common."""

    same: Same
    upstream: Upstream
    request: Body
    sent: Body
    decisions: msgspec.Raw
    """As the plan has them; msgpack."""
    diagnostics: tuple[dict[str, Any], ...]
    """As they stand in the answer."""
    output: list[tuple[str, str | None, str | None]]
    """Of each item of the answer its type, its status and its name."""


class Packed(msgspec.Struct, frozen=True, gc=False):
    own: Own
    at: float
    """When an upstream was asked …"""
    accepted: float
    """… and how soon it accepted."""
    alike: bytes
    """An `Alike`, as msgpack."""
    count: int
    """Of the request how many items are said, and likewise …"""
    sent_count: int
    """… of the messages that were sent."""
    lines: bytes
    """JSON, a line each: what is said in the request, what is said in what was sent, what was used, and the items of
    the answer."""
    weight: int
    """As that of its draft."""

    def open(self) -> Alike:
        return _open(self.alike)


_open: Final = msgspec.msgpack.Decoder(Alike).decode


def pack_draft(draft: Draft) -> Packed | None:
    """Nobody knows how long a history is, nor what was asked for in a request that is gone."""
    planned, ended, answered = draft.planned, draft.ended, draft.answered
    if draft.full or draft.weight > SMALL or planned is None or ended is None or answered is None or planned.history:
        return None
    response, steps = ended.response, ended.steps
    if response is None or len(steps) != _USUAL or ended.failure is not None or answered.failure is not None:
        return None
    size = weigh_response(response) if ended.written is None else len(ended.written)  # type: ignore[arg-type]
    if size > SMALL or response.get("top_logprobs"):  # these are longer than the words, and not weighed
        return None
    (at, sent), (_, accepted) = steps
    if type(sent) is not Sent or type(accepted) is not Accepted or sent.body is None:
        return None
    asked, output = planned.asked, response["output"]
    if "tools" in asked:
        asked = showable_body(cast(Any, asked))
    body, items = sent.body, planned.items
    field = "messages" if "messages" in body else "input"
    messages = body.get(field)
    # What is said apart from the rest: with a 0 in its place this is the fields of a `Body`.
    if items and "input" in asked:
        request = "input", {**asked, "input": 0}
    else:
        request, items = ("", asked), ()  # type: ignore[assignment]
    if type(messages) is list and messages and type(messages[0]) is dict:
        body = field, {**body, field: 0}  # type: ignore[assignment]
    else:
        body, messages = ("", body), ()  # type: ignore[assignment]
    try:
        alike = _pack(
            (
                same_of(draft),
                (sent.provider, sent.model, sent.attempt, sent.why, sent.key),
                request,
                body,
                planned.plan.compatibility.decisions,
                response["isthmus"]["diagnostics"],
                [(item["type"], item.get("status"), item.get("name")) for item in output],
            )
        )
        lines = _encode_lines([items, messages, ended.usage, *output])
        at -= draft.began - draft.over + ended.seconds
        return Packed(own_of(draft), at, accepted.seconds, alike, len(items), len(messages), lines, draft.weight)
    except Exception:  # something that has no JSON: whoever makes the trace says so
        return None
