"""The facts of one request → its trace.

In: a draft that is over. Out: its trace, packed, not scrubbed yet. What the facts hold is read and changed nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from isthmus.bridge.parse import conversation_of
from isthmus.bridge.tools.credentials import showable_body
from isthmus.errors import IsthmusError
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import Contents
from isthmus.observe.traces.draft import Draft
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
from isthmus.ports.packed import NO_SUMMARY, PackedTrace, encode
from isthmus.ports.traced import (
    Door,
    Timings,
    Trace,
    TracedBody,
    TracedCall,
    TracedCheck,
    TracedDecision,
    TracedError,
    TracedItem,
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
_NO_BODY: Final = TracedBody()
_NUMBERS: Final = (int, float)
_told: Final = attrgetter("path", "action", "reason", "code")
_sends, _value = attrgetter("sends"), attrgetter("effective_value")


class Made(msgspec.Struct, frozen=True):
    """A trace but for the items of its answer: how long these are is found out by whoever writes it."""

    summary: TraceSummary
    detail: bytes
    items: Sequence[Mapping[str, Any]] = ()


_NOBODY: Final = Received("", "", "", "", "", "", 0, 0.0)
_UNPLANNED: Final = Planned("", "", "", None, {})
_UNANSWERED: Final = Answered("", "", "", "", "", "", "", 0, None, False, 0.0)
_UNENDED: Final = Ended("", "", "", "", 0, "refused", None, None, None, 0.0, None, 0, 0)
"""In place of facts that never came."""


def make_record(draft: Draft, bodies: Bodies, contents: Contents) -> Made:
    """`contents`: what of it may be kept as it is."""
    planned, ended, answered = draft.planned or _UNPLANNED, draft.ended or _UNENDED, draft.answered or _UNANSWERED
    received = answered.received or _NOBODY
    asked, plan, response = planned.asked, planned.plan, ended.response
    failure = ended.failure or answered.failure
    size = getattr(plan, "size", 0)
    request = _request(draft, bodies, contents, size)
    calls, tools, checks, retries = _happened(draft, bodies, contents, size)
    total = draft.last - draft.began
    door = _KNOWN_PATHS.get(answered.path) or _door(answered.path)
    provider, model, outcome = ended.provider, ended.model, ended.outcome
    if draft.ended is None:
        outcome = outcome if draft.answered is None else _outcome(answered)
        if plan is not None:
            provider, model = plan.target.provider, plan.target.model
    usage, conversation = ended.usage, _conversation(asked) if "conversation" in asked else ""
    spent, made, cached, thought = ended.used
    # Tables of at most fifteen, not all as arguments by name: Python would take three instructions for each.
    who_asked: dict[str, Any] = {
        "id": draft.id,
        "at": draft.at,
        "ended_at": draft.at + total,
        "response": planned.id,
        "owner": planned.owner if plan is not None else answered.owner,
        "key": answered.key,
        "client": answered.client,
        "client_id": answered.client_id,
        "door": door,
        "method": answered.method,
        "path": answered.path,
        "asked_model": str(asked.get("model") or ""),
    }
    what_came: dict[str, Any] = {
        "provider": provider,
        "model": model,
        "stream": asked.get("stream") is True,
        "background": planned.background,
        "outcome": outcome,
        "status": answered.status,
        "code": "" if failure is None else failure.code,
        "input_tokens": spent,
        "output_tokens": made,
        "cached_tokens": cached,
        "reasoning_tokens": thought,
        "cost": ended.price,
    }
    how_long: dict[str, Any] = {
        "total": total,
        "first_token": ended.first_token,
        "first_byte": ended.first_byte,
        "overhead": None if plan is None else (planned.parse_seconds or 0.0) + planned.plan_seconds + ended.settled,
        "attempts": ended.attempts,
        "retries": retries,
        "degraded": ended.degraded,
        "ignored": ended.ignored,
        "previous": str(asked.get("previous_response_id") or ""),
        "conversation": conversation,
        "thread": conversation or _thread(planned.id, door, asked, request, bodies),
        "bytes": answered.size,
    }
    trace = Trace(
        summary=NO_SUMMARY,
        timings=Timings(
            received.seconds,
            planned.parse_seconds,
            None if plan is None else planned.plan_seconds,
            ended.first_byte,
            ended.first_token,
            ended.settled,
            None if draft.ended is None else ended.seconds,
            total,
        ),
        request=request,
        history=planned.history,
        decisions=() if plan is None else traced_decisions(plan.compatibility.decisions),
        diagnostics=_diagnostics(response, plan, failure),
        calls=calls,  # type: ignore[arg-type]  # so are these: they are only encoded
        tools=tools,  # type: ignore[arg-type]
        checks=checks,  # type: ignore[arg-type]
        usage=usage,  # type: ignore[arg-type]  # it is a `dict`, and nobody changes it
        batches=ended.batches,
        events=ended.events,
        marks=ended.marks,
        error=None if failure is None else _error(failure),
        traceparent=received.traceparent,
    )
    if contents.kept:
        how_long["capture"] = "full"
        trace = trace if response is None else replace(trace, answer=contents.keep(_NO_BODY, response))
    items = () if response is None else response["output"]
    return Made(TraceSummary(**who_asked, **what_came, **how_long), encode(trace), items)


def finish_record(made: Made) -> PackedTrace:
    detail = made.detail
    if made.items:
        detail = b'%b,"output":%b}' % (detail[:-1], encode(list(map(_item, made.items))))
    return PackedTrace(made.summary, encode(made.summary), detail)


def _door(path: str) -> Door:
    return next((door for begins, door in _DOORS if path.startswith(begins)), "other")


def _outcome(answered: Answered) -> str:
    """Of what had no run."""
    if answered.failure is not None:
        return "refused"
    return "cancelled" if answered.left else "answered" if answered.status < 500 else "failed"


# ── what was asked ───────────────────────────────────────────────────────────────────────────────────


def _request(draft: Draft, bodies: Bodies, contents: Contents, size: int) -> TracedBody:
    """By its fields, as far as it was read; with the client's own bytes where these are wanted."""
    received, planned = draft.received, draft.planned
    if planned is not None:
        whole = _showable(planned)
        read = bodies.read(whole, size)
    else:
        whole, read = None, TracedBody(0 if received is None else received.size)
    if not contents.kept:
        return read
    if received is not None and received.raw is not None:
        return contents.keep_raw(read, received.raw)
    return contents.missed(read) if whole is None else contents.keep(read, whole)


def _showable(planned: Planned) -> Mapping[str, Any]:
    """The request with its input as items, in the place where it stood."""
    asked = planned.asked
    if planned.items and "input" in asked:
        asked = {**asked, "input": list(planned.items)}
    return showable_body(asked) if "tools" in asked else asked  # type: ignore[arg-type]  # it is read


def _conversation(asked: Mapping[str, Any]) -> str:
    return conversation_of(cast(Any, asked)) or "" if asked.get("conversation") is not None else ""


def _thread(run: str, door: Door, asked: Mapping[str, Any], request: TracedBody, bodies: Bodies) -> str:
    """What all turns have in common that belong to no conversation, as far as they tell; the store knows chains of
    responses."""
    session = asked.get("prompt_cache_key")
    if isinstance(session, str) and session:
        return f"session:{bodies.hash(session.encode('utf-8', 'surrogatepass'))}"
    if door in ("chat", "messages") or asked.get("store") is False:
        opening = next((piece.hash for piece in request.pieces if piece.role == "user"), "")
        if opening:
            return f"opening:{opening}"
    return run


def traced_decisions(decisions: Sequence[Any]) -> tuple[TracedDecision, ...]:
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


# ── what happened ────────────────────────────────────────────────────────────────────────────────────


def _happened(
    draft: Draft, bodies: Bodies, contents: Contents, size: int
) -> tuple[list[TracedCall], list[TracedTool], list[TracedCheck], int]:
    """Each asking of an upstream with what became of it, what was done with its answers, and how many retries."""
    calls: list[TracedCall] = []
    tools: list[TracedTool] = []
    checks: list[TracedCheck] = []
    ended, retries = draft.ended, 0
    if ended is None:
        return calls, tools, checks, retries
    began = draft.began - draft.over + ended.seconds
    for at, fact in ended.steps:
        kind = type(fact)  # every small request comes by here: patterns would take ten times as long
        if kind is Sent:
            calls.append(_call(at - began, fact, bodies, contents, size))
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


def _call(at: float, sent: Sent, bodies: Bodies, contents: Contents, size: int) -> TracedCall:
    body = _NO_BODY if sent.body is None else bodies.read(sent.body, size)
    if contents.kept and sent.body is not None:
        body = contents.keep(body, sent.body)
    return TracedCall(sent.provider, sent.model, sent.attempt, sent.why, at, body, None, (), None, sent.key)


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
    output = _NO_BODY
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


def _item(item: Mapping[str, Any]) -> TracedItem:
    size = len(encode(item))
    if size > 1 << 16:
        time.sleep(0)
    return TracedItem(item["type"], item.get("status") or "", size, item.get("name") or "")
