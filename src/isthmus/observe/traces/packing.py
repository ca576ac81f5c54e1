"""A draft of a usual request → the same draft, holding on to nothing but bytes.

In: a draft that is over. Out: nothing; where it is small and nothing went wrong, what it refers to (bodies, plan, the
answer) is JSON now, made in a few calls while all of it is at hand. The thread makes a trace of that in 10 µs, since it
makes many in a row. On the loop the same takes four times as long, because nothing that it needs stays in the
processor's caches from one request to the next; and so it does in the thread, if all that it reads was left behind by
others long ago. What may take longer (a long body, a long history, what tools have said, all content) is not packed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from isthmus.bridge.tools.credentials import showable_body
from isthmus.observe.traces.bodies import pack_body
from isthmus.observe.traces.draft import Asked, Draft, Packed
from isthmus.ports import Accepted, Planned, Sent
from isthmus.ports.traced import TracedBody, TracedCall, TracedItem
from isthmus.protocol.response import weigh_response

SMALL: Final = 65_536
"""Bytes that a draft may hold on to, and characters of its answer."""
_USUAL: Final = 2
"""What happens to a request that is asked once: it is sent, and accepted."""
_NOTHING: Final[dict[str, Any]] = {}
NO_BODY: Final = TracedBody()
_TOLD: Final = Asked.__struct_fields__
_encode: Final = msgspec.json.Encoder().encode


def pack_draft(draft: Draft) -> None:
    """Nobody knows how long a history is, nor what was asked for in a request that is gone."""
    planned, ended, answered = draft.planned, draft.ended, draft.answered
    if draft.full or draft.weight > SMALL or planned is None or ended is None or answered is None or planned.history:
        return
    response, steps = ended.response, ended.steps
    if response is None or len(steps) != _USUAL or ended.failure is not None or answered.failure is not None:
        return
    size = weigh_response(response) if ended.written is None else len(ended.written)  # type: ignore[arg-type]
    if size > SMALL or response.get("top_logprobs"):  # these are longer than the words, and not weighed
        return
    (at, sent), (_, accepted) = steps
    if type(sent) is not Sent or type(accepted) is not Accepted or sent.body is None:
        return
    asked, body = planned.asked, sent.body
    shown = showable_body(cast(Any, asked)) if "tools" in asked else asked
    said = "messages" if "messages" in body else "input"
    diagnostics = response["isthmus"]["diagnostics"]
    try:
        draft.packed = Packed(
            pack_body(shown, "input", planned.items if "input" in asked else None),
            told_of(asked),
            trace_call(sent, at - (draft.began - draft.over + ended.seconds), accepted.seconds),
            pack_body(body, said, listed if type(listed := body.get(said)) is list else None),
            _encode(planned.plan.compatibility.decisions),
            _encode(diagnostics) if diagnostics else b"",
            tuple(map(trace_item, response["output"])),
            _encode(ended.usage),
        )
    except Exception:  # something that has no JSON: whoever makes the trace says so
        return
    draft.planned = replace(planned, plan=None, asked=_NOTHING, items=())
    draft.ended = replace(ended, response=None, written=None, usage=None, steps=())


def told_of(asked: Mapping[str, Any]) -> Asked:
    return Asked(*map(asked.get, _TOLD))


def trace_item(item: Mapping[str, Any]) -> TracedItem:
    size = len(_encode(item))
    if size > SMALL:
        time.sleep(0)  # others have their turn
    return TracedItem(item["type"], item.get("status") or "", size, item.get("name") or "")


def asked_of(planned: Planned) -> Any:
    """The request with its input as items, in the place where it stood, and without credentials."""
    asked = planned.asked
    if planned.items and "input" in asked:
        asked = {**asked, "input": list(planned.items)}
    return showable_body(cast(Any, asked))


def trace_call(sent: Sent, at: float, first_byte: float | None = None, body: TracedBody = NO_BODY) -> TracedCall:
    return TracedCall(sent.provider, sent.model, sent.attempt, sent.why, at, body, first_byte, (), None, sent.key)
