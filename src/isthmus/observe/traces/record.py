"""The facts of one request → its trace.

In: a draft that is over, and what it tells of bodies, decisions and the answer. Out: its trace, packed, not scrubbed
yet. What the facts hold is read and changed nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from isthmus.bridge.parse import conversation_of
from isthmus.errors import IsthmusError
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import Contents
from isthmus.observe.traces.draft import Asked, Draft
from isthmus.observe.traces.packing import NO_BODY, trace_call
from isthmus.observe.traces.told import Told
from isthmus.ports import (
    Accepted,
    Answered,
    AttemptFailed,
    ContractChecked,
    Ended,
    Planned,
    Received,
    Retried,
    Sent,
    ToolRan,
)
from isthmus.ports.packed import PackedTrace, encode
from isthmus.ports.traced import (
    NO_SUMMARY,
    Capture,
    Door,
    Timings,
    Trace,
    TracedCall,
    TracedCheck,
    TracedError,
    TracedRetry,
    TracedTool,
    TraceSummary,
)

_DOORS: Final[tuple[tuple[str, Door], ...]] = (
    ("/v1/responses", "responses"),
    ("/v1/chat/completions", "chat"),
    ("/v1/messages", "messages"),
    ("/v1/embeddings", "embeddings"),
    ("/v1/images", "images"),
    ("/v1/alpha/search", "search"),
)
_KNOWN_PATHS: Final[dict[str, Door]] = {"": "responses", **dict(_DOORS)}
_FULL: Final[Capture] = "full"
_METADATA: Final[Capture] = "metadata"
_NOBODY: Final = Received("", "", "", "", "", "", 0, 0.0)
_UNPLANNED: Final = Planned("", "", "", None, {})
_UNANSWERED: Final = Answered("", "", "", "", "", "", "", 0, None, False, 0.0)
_UNENDED: Final = Ended("", "", "", "", 0, "refused", None, None, None, 0.0, None, 0, 0)
"""In place of facts that never came."""


def make_record(draft: Draft, told: Told, bodies: Bodies, contents: Contents) -> PackedTrace:
    """`contents`: what of it may be kept as it is."""
    planned, ended, answered = draft.planned or _UNPLANNED, draft.ended or _UNENDED, draft.answered or _UNANSWERED
    received = answered.received or _NOBODY
    asked, was_planned, failure = told.asked, draft.planned is not None, ended.failure or answered.failure
    calls, tools, checks, retries = (told.calls, (), (), 0) if told.calls else _happened(draft, told, bodies, contents)
    total = draft.last - draft.began
    door = _KNOWN_PATHS.get(answered.path) or _door(answered.path)
    provider, model, outcome = ended.provider, ended.model, ended.outcome
    if draft.ended is None:
        outcome = outcome if draft.answered is None else _outcome(answered)
        if planned.plan is not None:
            provider, model = planned.plan.target.provider, planned.plan.target.model
    conversation = "" if asked.conversation is None else _conversation(asked)
    plan_seconds = planned.plan_seconds if was_planned else None
    spent, made, cached, thought = ended.used
    # All in the order of their fields: to name each would take longer than all the rest. And in two parts, since Python
    # puts more than thirty together one by one.
    who_asked = (
        draft.id,
        draft.at,
        draft.at + total,
        0,
        planned.id,
        planned.owner if was_planned else answered.owner,
        answered.key,
        answered.client,
        answered.client_id,
        door,
        answered.method,
        answered.path,
        str(asked.model or ""),
        provider,
        model,
        asked.stream is True,
        planned.background,
        outcome,
        answered.status,
        "" if failure is None else failure.code,
    )
    what_came = (
        spent,
        made,
        cached,
        thought,
        ended.price,
        total,
        ended.first_token,
        ended.first_byte,
        None if plan_seconds is None else (planned.parse_seconds or 0.0) + plan_seconds + ended.settled,
        ended.attempts,
        retries,
        ended.degraded,
        ended.ignored,
        str(asked.previous_response_id or ""),
        conversation,
        conversation or _thread(planned.id, door, told, bodies),
        answered.size,
        _FULL if contents.kept else _METADATA,
    )
    summary = TraceSummary(*who_asked, *what_came)
    answer = NO_BODY
    if contents.kept and ended.response is not None:
        answer = contents.keep(NO_BODY, ended.response)
    trace = Trace(
        NO_SUMMARY,
        Timings(
            received.seconds,
            planned.parse_seconds,
            plan_seconds,
            ended.first_byte,
            ended.first_token,
            ended.settled,
            None if draft.ended is None else ended.seconds,
            total,
        ),
        told.request,
        planned.history,
        told.decisions,
        told.diagnostics,
        calls,  # type: ignore[arg-type]  # so are these: they are only encoded
        tools,  # type: ignore[arg-type]
        checks,  # type: ignore[arg-type]
        told.output,
        answer,
        told.usage,
        ended.batches,
        ended.events,
        ended.marks,
        None if failure is None else _error(failure),
        received.traceparent,
    )
    return PackedTrace(summary, encode(summary), encode(trace))


def _door(path: str) -> Door:
    return next((door for begins, door in _DOORS if path.startswith(begins)), "other")


def _outcome(answered: Answered) -> str:
    """Of what had no run."""
    if answered.failure is not None:
        return "refused"
    return "cancelled" if answered.left else "answered" if answered.status < 500 else "failed"


# ── what was asked ───────────────────────────────────────────────────────────────────────────────────


def _conversation(asked: Asked) -> str:
    return conversation_of(cast(Any, {"conversation": asked.conversation})) or ""


def _thread(run: str, door: Door, told: Told, bodies: Bodies) -> str:
    """What all turns have in common that belong to no conversation, as far as they tell; the store knows chains of
    responses."""
    session = told.asked.prompt_cache_key
    if isinstance(session, str) and session:
        return f"session:{bodies.hash(session.encode('utf-8', 'surrogatepass'))}"
    if door in ("chat", "messages") or told.asked.store is False:
        for piece in told.request.pieces:
            if piece.role == "user":
                return f"opening:{piece.hash}"
    return run


# ── what happened ────────────────────────────────────────────────────────────────────────────────────


def _happened(
    draft: Draft, told: Told, bodies: Bodies, contents: Contents
) -> tuple[Sequence[TracedCall], Sequence[TracedTool], Sequence[TracedCheck], int]:
    """Each asking of an upstream with what became of it, what was done with its answers, and how many retries."""
    calls: list[TracedCall] = []
    tools: list[TracedTool] = []
    checks: list[TracedCheck] = []
    ended, retries = draft.ended, 0
    if ended is None:
        return calls, tools, checks, retries
    began, sent = draft.began - draft.over + ended.seconds, iter(told.sent)
    for at, fact in ended.steps:
        kind = type(fact)  # every small request comes by here: patterns would take ten times as long
        if kind is Sent:
            calls.append(trace_call(fact, at - began, None, next(sent)))
        elif kind is Accepted and calls:
            calls[-1] = replace(calls[-1], first_byte=fact.seconds)
        elif kind is Retried and calls:
            retries += 1
            retry = TracedRetry(_error(fact.failure), fact.wait, fact.elsewhere)
            calls[-1] = replace(calls[-1], retries=(*calls[-1].retries, retry))
        elif kind is AttemptFailed and calls:
            calls[-1] = replace(calls[-1], error=_error(fact.failure))
        elif kind is ToolRan:
            tools.append(_tool(at - began, fact, bodies, contents))
        elif kind is ContractChecked:
            checks.append(_check(fact, contents))
    return calls, tools, checks, retries


def _error(failure: IsthmusError) -> TracedError:
    return TracedError(
        failure.code,
        failure.message,
        failure.param,
        failure.provider or "",
        failure.status,
        failure.request_id or "",
    )


def _tool(ended: float, fact: ToolRan, bodies: Bodies, contents: Contents) -> TracedTool:
    call, ran = fact.call, fact.ran
    output = NO_BODY
    if ran is not None:
        said = ran.output if isinstance(ran.output, str) else encode(ran.output).decode()
        output = contents.keep(bodies.text(said), ran.output)
    return TracedTool(
        call.kind,
        call.name,
        fact.seconds,
        ran is None or ran.failed,
        contents.keep(bodies.read(call.arguments), call.arguments),
        output,
        max(ended - fact.seconds, 0.0),
        str(call.tool.get("server_label") or "") if call.kind == "mcp" else "",
    )


def _check(fact: ContractChecked, contents: Contents) -> TracedCheck:
    check = fact.check
    words = check.errors if contents.kept else ()
    return TracedCheck(check.valid, fact.seconds, check.cleaned, check.unchecked, len(check.errors), words)
