"""What a draft tells beside bodies, decisions and the answer: who asked, when, what became of it, and how long it took.

In: a draft that is over. Out: an `Outline`: what many requests have in common, and what each has of its own. Of a usual
request both are made on the loop, while all of that is at hand (`packing`); of any other by whoever makes its trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.observe.traces.draft import Draft
from isthmus.ports import Answered, Ended, Mark, Planned, Received

_NOBODY: Final = Received("", "", "", "", "", "", 0, 0.0)
_UNPLANNED: Final = Planned("", "", "", None, {})
_UNANSWERED: Final = Answered("", "", "", "", "", "", "", 0, None, False, 0.0)
_UNENDED: Final = Ended("", "", "", "", 0, "refused", None, None, None, 0.0, None, 0, 0)
"""In place of facts that never came."""


class Same(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What many requests have in common."""

    owner: str
    key: str
    client: str
    method: str
    path: str
    provider: str
    model: str
    background: bool
    outcome: str
    status: int
    code: str
    """Of its failure."""
    attempts: int
    degraded: int
    ignored: int
    history: int


class Own(msgspec.Struct, frozen=True, gc=False):
    """What each has of its own. Times are seconds, as in the facts."""

    id: str
    """Of the request; of a run without one, the run's."""
    at: float
    """When it began, by the clock of the day, …"""
    ended_at: float
    """… and when it was over."""
    run: str
    client_id: str
    spent: int
    """Tokens: of the prompt, …"""
    made: int
    """… of the answer, …"""
    cached: int
    """… of the prompt those from a cache, …"""
    thought: int
    """… and of the answer those of thinking."""
    price: float | None
    total: float
    first_token: float | None
    first_byte: float | None
    overhead: float | None
    """What the gateway took itself: parse, plan and settle."""
    size: int
    """Of the client's body."""
    body: float
    """Until that was there."""
    parse: float | None
    plan: float | None
    settled: float
    seconds: float | None
    """Of the run; `None`: there was none."""
    batches: int
    events: int
    marks: tuple[Mark, ...]
    traceparent: str


class Outline(msgspec.Struct, frozen=True, gc=False):
    same: Same
    own: Own


def outline_of(draft: Draft) -> Outline:
    return Outline(Same(*same_of(draft)), own_of(draft))


def same_of(draft: Draft) -> tuple[str, str, str, str, str, str, str, bool, str, int, str, int, int, int, int]:
    """The fields of a `Same`. All in their order, as everywhere here: to name each would take longer than the rest."""
    planned, ended, answered = draft.planned or _UNPLANNED, draft.ended or _UNENDED, draft.answered or _UNANSWERED
    provider, model, outcome = ended.provider, ended.model, ended.outcome
    if draft.ended is None:
        outcome = outcome if draft.answered is None else _outcome(answered)
        if planned.plan is not None:
            provider, model = planned.plan.target.provider, planned.plan.target.model
    failure = ended.failure or answered.failure
    return (
        answered.owner if draft.planned is None else planned.owner,
        answered.key,
        answered.client,
        answered.method,
        answered.path,
        provider,
        model,
        planned.background,
        outcome,
        answered.status,
        "" if failure is None else failure.code,
        ended.attempts,
        ended.degraded,
        ended.ignored,
        planned.history,
    )


def own_of(draft: Draft) -> Own:
    planned, ended, answered = draft.planned or _UNPLANNED, draft.ended or _UNENDED, draft.answered or _UNANSWERED
    received, total = answered.received or _NOBODY, draft.last - draft.began
    parse, settled = planned.parse_seconds, ended.settled
    plan = None if draft.planned is None else planned.plan_seconds
    spent, made, cached, thought = ended.used
    return Own(
        answered.request or planned.request or planned.id,
        draft.at,
        draft.at + total,
        planned.id,
        answered.client_id,
        spent,
        made,
        cached,
        thought,
        ended.price,
        total,
        ended.first_token,
        ended.first_byte,
        None if plan is None else (parse or 0.0) + plan + settled,
        answered.size,
        received.seconds,
        parse,
        plan,
        settled,
        None if draft.ended is None else ended.seconds,
        ended.batches,
        ended.events,
        ended.marks,
        received.traceparent,
    )


def _outcome(answered: Answered) -> str:
    """Of what had no run."""
    if answered.failure is not None:
        return "refused"
    return "cancelled" if answered.left else "answered" if answered.status < 500 else "failed"


class Asked(msgspec.Struct, frozen=True, gc=False):
    """Of a request, what its summary tells; whatever a client may have written there."""

    model: Any = None
    stream: Any = None
    store: Any = None
    previous_response_id: Any = None
    conversation: Any = None
    prompt_cache_key: Any = None


_TOLD: Final = Asked.__struct_fields__


def told_of(asked: Mapping[str, Any]) -> Asked:
    return Asked(*map(asked.get, _TOLD))
