"""What a draft tells → its trace.

In: the outline of a request, and what is told of its bodies, decisions and answer. Out: its trace, packed, not scrubbed
yet.
"""

from __future__ import annotations

from typing import Any, Final, cast

from isthmus.bridge.parse import conversation_of
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.outline import Asked, Outline
from isthmus.observe.traces.told import Told
from isthmus.ports.packed import PackedTrace, encode, file_by
from isthmus.ports.traced import NO_SUMMARY, Capture, Door, Timings, Trace, TraceSummary

_DOORS: Final[tuple[tuple[str, Door], ...]] = (
    ("/v1/responses", "responses"),
    ("/v1/chat/completions", "chat"),
    ("/v1/messages", "messages"),
    ("/v1/embeddings", "embeddings"),
    ("/v1/images", "images"),
    ("/v1/alpha/search", "search"),
)
_KNOWN_PATHS: Final[dict[str, Door]] = {"": "responses", **dict(_DOORS)}
_UNSTORED: Final = ("chat", "messages")
"""Doors whose clients send a conversation anew with every turn."""
_SAID: Final = "input["


def make_record(outline: Outline, told: Told, bodies: Bodies, capture: Capture) -> PackedTrace:
    summary, trace = assemble(outline, told, thread_of(outline, told, bodies), capture)
    return PackedTrace(file_by(summary), encode(summary), encode(trace))


def assemble(outline: Outline, told: Told, thread: str, capture: Capture) -> tuple[TraceSummary, Trace]:
    """Each thing in its place: nothing is made here, so that any of them may stand for one that comes later
    (`shapes`)."""
    same, own, asked = outline.same, outline.own, told.asked
    # All in the order of their fields: to name each would take longer than all the rest. And in two parts, since Python
    # puts more than thirty together one by one.
    who_asked = (
        own.id,
        own.at,
        own.ended_at,
        0,
        own.run,
        same.owner,
        same.key,
        same.client,
        own.client_id,
        door_of(same.path),
        same.method,
        same.path,
        str(asked.model or ""),
        same.provider,
        same.model,
        asked.stream is True,
        same.background,
        same.outcome,
        same.status,
        same.code,
    )
    what_came = (
        own.spent,
        own.made,
        own.cached,
        own.thought,
        own.price,
        own.total,
        own.first_token,
        own.first_byte,
        own.overhead,
        same.attempts,
        told.retries,
        same.degraded,
        same.ignored,
        str(asked.previous_response_id or ""),
        _conversation(asked),
        thread,
        own.size,
        capture,
    )
    trace = Trace(
        NO_SUMMARY,
        Timings(
            own.body,
            own.parse,
            own.plan,
            own.first_byte,
            own.first_token,
            own.settled,
            own.seconds,
            own.total,
        ),
        told.request,
        same.history,
        told.decisions,
        told.diagnostics,
        told.calls,
        told.tools,
        told.checks,
        told.output,
        told.answer,
        told.usage,
        own.batches,
        own.events,
        own.marks,
        told.error,
        own.traceparent,
    )
    return TraceSummary(*who_asked, *what_came), trace


def door_of(path: str) -> Door:
    known = _KNOWN_PATHS.get(path)
    return known if known is not None else next((door for begins, door in _DOORS if path.startswith(begins)), "other")


def _conversation(asked: Asked) -> str:
    if asked.conversation is None:
        return ""
    return conversation_of(cast(Any, {"conversation": asked.conversation})) or ""


def thread_of(outline: Outline, told: Told, bodies: Bodies) -> str:
    """What all turns have in common, as far as they tell; the store knows chains of responses."""
    asked = told.asked
    session = asked.prompt_cache_key
    if conversation := _conversation(asked):
        return conversation
    if isinstance(session, str) and session:
        return f"session:{bodies.hash(session.encode('utf-8', 'surrogatepass'))}"
    if has_opening(outline, asked):
        for piece in told.request.pieces:
            if piece.role == "user" and piece.path.startswith(_SAID):
                return f"opening:{piece.hash}"
    return outline.own.run


def has_opening(outline: Outline, asked: Asked) -> bool:
    """Whether its client sends all turns anew: then the first words of a person tell which conversation it is."""
    return asked.store is False or door_of(outline.same.path) in _UNSTORED
