"""The facts of one request → its trace.

In: a draft that is over. Out: a `Trace`, not scrubbed yet. It is made beside the loop, in the thread that writes; what
the facts hold is read there and changed nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

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
from isthmus.ports.traces import (
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
_encode: Final = msgspec.json.Encoder().encode
_Facts = Mapping[type, list[tuple[float, Any]]]


def make_record(draft: Draft, bodies: Bodies, contents: Contents) -> Trace:
    """`contents`: what of it may be kept as it is."""
    facts: dict[type, list[tuple[float, Any]]] = {}
    for each in draft.facts:
        facts.setdefault(type(each[1]), []).append(each)
    received, planned = _one(facts, Received), _one(facts, Planned)
    ended, answered = _one(facts, Ended), _one(facts, Answered)
    began = draft.facts[0][0] - (0.0 if received is None else received.seconds)
    asked: Mapping[str, Any] = {} if planned is None else planned.asked
    plan = None if planned is None else planned.plan
    request = _request(received, planned, bodies, contents)
    failure = (ended and ended.failure) or (answered and answered.failure)
    calls = _calls(draft, facts, began, bodies, contents, getattr(plan, "size", 0))
    response = None if ended is None else ended.response
    answer = TracedBody() if response is None else contents.keep(TracedBody(), response)
    total = draft.facts[-1][0] - began
    timings = Timings(
        0.0 if received is None else received.seconds,
        None if planned is None else planned.parse_seconds,
        None if planned is None else planned.plan_seconds,
        None if ended is None else ended.first_byte,
        None if ended is None else ended.first_token,
        0.0 if ended is None else ended.settled,
        None if ended is None else ended.seconds,
        total,
    )
    who = answered or received
    door = _door(who.path) if who is not None else "responses"
    usage = None if ended is None else ended.usage
    spent, made, cached, thought = _tokens(usage)
    target = None if plan is None else plan.target
    summary = TraceSummary(
        id=draft.request or draft.run,
        at=draft.at,
        ended_at=draft.at + total,
        response=draft.run,
        owner=planned.owner if planned is not None else "" if who is None else who.owner,
        key="" if who is None else who.key,
        client="" if who is None else who.client,
        client_id="" if answered is None else answered.client_id,
        door=door,
        method="" if who is None else who.method,
        path="" if who is None else who.path,
        asked_model=str(asked.get("model") or ""),
        provider=ended.provider if ended is not None else "" if target is None else target.provider,
        model=ended.model if ended is not None else "" if target is None else target.model,
        stream=asked.get("stream") is True,
        background=planned is not None and planned.background,
        outcome=_outcome(ended, answered),
        status=0 if answered is None else answered.status,
        code="" if failure is None else failure.code,
        input_tokens=spent,
        output_tokens=made,
        cached_tokens=cached,
        reasoning_tokens=thought,
        cost=None if ended is None or not usage else ended.cost.price(spent, made, cached),
        total=total,
        first_token=timings.first_token,
        first_byte=timings.first_byte,
        overhead=None if planned is None else (timings.parse or 0.0) + planned.plan_seconds + timings.settle,
        attempts=0 if ended is None else ended.attempts,
        retries=len(facts.get(Retried, ())),
        degraded=0 if ended is None else ended.degraded,
        ignored=0 if ended is None else ended.ignored,
        previous=str(asked.get("previous_response_id") or ""),
        conversation=_conversation(asked),
        thread=_thread(draft.run, door, asked, request, bodies),
        bytes=0 if who is None else who.size,
        capture="full" if contents.kept else "metadata",
    )
    return Trace(
        summary=summary,
        timings=timings,
        request=request,
        history=0 if planned is None else planned.history,
        decisions=() if plan is None else tuple(map(traced_decision, plan.compatibility.decisions)),
        diagnostics=_diagnostics(response, plan, failure),
        calls=calls,
        tools=tuple([_tool(at - began, fact, bodies, contents) for at, fact in facts.get(ToolRan, ())]),
        checks=tuple([_check(fact, contents) for _, fact in facts.get(ContractChecked, ())]),
        output=() if response is None else tuple(map(_item, response["output"])),
        answer=answer,
        usage=cast("dict[str, Any] | None", usage),
        batches=0 if ended is None else ended.batches,
        events=0 if ended is None else ended.events,
        marks=() if ended is None else ended.marks,
        error=None if failure is None else _error(failure),
        traceparent="" if received is None else received.traceparent,
    )


def _one(facts: _Facts, kind: type[Any]) -> Any:
    found = facts.get(kind)
    return found[-1][1] if found else None


def _door(path: str) -> Door:
    return next((door for begins, door in _DOORS if path.startswith(begins)), "other")


def _outcome(ended: Ended | None, answered: Answered | None) -> str:
    if ended is not None:
        return ended.outcome
    if answered is not None and answered.failure is None:
        return "cancelled" if answered.left else "answered" if answered.status < 500 else "failed"
    return "refused"


def _tokens(usage: Mapping[str, Any] | None) -> tuple[int, int, int, int]:
    if not usage:
        return 0, 0, 0, 0
    ins, outs = usage.get("input_tokens_details") or {}, usage.get("output_tokens_details") or {}
    return (
        usage.get("input_tokens") or 0,
        usage.get("output_tokens") or 0,
        ins.get("cached_tokens") or 0,
        outs.get("reasoning_tokens") or 0,
    )


# ── what was asked ───────────────────────────────────────────────────────────────────────────────────


def _request(received: Received | None, planned: Planned | None, bodies: Bodies, contents: Contents) -> TracedBody:
    """By its fields, as far as it was read; with the client's own bytes where these are wanted."""
    if planned is not None:
        whole = _showable(planned)
        read = bodies.read(whole, getattr(planned.plan, "size", 0))
    else:
        whole, read = None, TracedBody(0 if received is None else received.size)
    if received is not None and received.raw is not None:
        return contents.keep_raw(read, received.raw)
    return contents.missed(read) if whole is None else contents.keep(read, whole)


def _showable(planned: Planned) -> Mapping[str, Any]:
    """The request with its input as items, in the place where it stood."""
    asked = {
        name: list(planned.items) if name == "input" and planned.items else value
        for name, value in planned.asked.items()
    }
    return showable_body(asked)


def _conversation(asked: Mapping[str, Any]) -> str:
    given = asked.get("conversation")
    return "" if given is None else conversation_of(cast(Any, asked)) or ""


def _thread(run: str, door: Door, asked: Mapping[str, Any], request: TracedBody, bodies: Bodies) -> str:
    """What all turns of the conversation have in common, as far as they tell; the store knows chains of responses."""
    if conversation := _conversation(asked):
        return conversation
    session = asked.get("prompt_cache_key")
    if isinstance(session, str) and session:
        return f"session:{bodies.hash(session.encode('utf-8', 'surrogatepass'))}"
    if door in ("chat", "messages") or asked.get("store") is False:
        opening = next((piece.hash for piece in request.pieces if piece.role == "user"), "")
        if opening:
            return f"opening:{opening}"
    return run


def traced_decision(decision: Any) -> TracedDecision:
    value = decision.effective_value
    return TracedDecision(
        decision.path,
        decision.action,
        decision.reason,
        decision.code,
        tuple(decision.sends),
        value if isinstance(value, int | float) else None,
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


def _calls(
    draft: Draft, facts: _Facts, began: float, bodies: Bodies, contents: Contents, size: int
) -> tuple[TracedCall, ...]:
    asked = facts.get(Sent, ())
    if len(asked) == 1 and Retried not in facts and AttemptFailed not in facts:  # as nearly always
        accepted = _one(facts, Accepted)
        seconds = None if accepted is None else accepted.seconds
        return (_call(*asked[0], began, seconds, (), None, bodies, contents, size),)
    calls: list[TracedCall] = []
    sent: tuple[float, Sent] | None = None
    first_byte: float | None = None
    retries: list[TracedRetry] = []
    error: TracedError | None = None

    def close() -> None:
        if sent is not None:
            calls.append(_call(*sent, began, first_byte, retries, error, bodies, contents, size))

    for at, fact in draft.facts:
        kind = type(fact)  # every small request comes by here: patterns would take ten times as long
        if kind is Sent:
            close()
            sent, first_byte, retries, error = (at, cast(Sent, fact)), None, [], None
        elif kind is Accepted:
            first_byte = cast(Accepted, fact).seconds
        elif kind is Retried:
            again = cast(Retried, fact)
            retries.append(TracedRetry(_error(again.failure), again.wait, again.elsewhere))
        elif kind is AttemptFailed:
            error = _error(cast(AttemptFailed, fact).failure)
    close()
    return tuple(calls)


def _call(
    at: float,
    sent: Sent,
    began: float,
    first_byte: float | None,
    retries: Sequence[TracedRetry],
    error: TracedError | None,
    bodies: Bodies,
    contents: Contents,
    size: int,
) -> TracedCall:
    body = TracedBody()
    if sent.body is not None:
        body = contents.keep(bodies.read(sent.body, size), sent.body)
    return TracedCall(
        sent.provider, sent.model, sent.attempt, sent.why, at - began, body, first_byte, tuple(retries), error, sent.key
    )


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
    output = TracedBody()
    if ran is not None:
        said = ran.output if isinstance(ran.output, str) else _encode(ran.output).decode()
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
    size = len(_encode(item))
    if size > 1 << 16:
        time.sleep(0)
    return TracedItem(item["type"], item.get("status") or "", size, item.get("name") or "")
