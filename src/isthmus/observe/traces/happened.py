"""What happened to a run, step by step, as a trace tells it.

In: a draft that still refers to its steps, items and failures. Out: each asking of an upstream with what became of it,
the tools that were run, the checks of the answer. What the facts hold is read and changed nowhere.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec.structs import replace

from isthmus.bridge.tools.credentials import showable_body
from isthmus.errors import IsthmusError
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.contents import Contents
from isthmus.observe.traces.draft import Draft
from isthmus.ports import Accepted, AttemptFailed, ContractChecked, Planned, Retried, Sent, ToolRan
from isthmus.ports.packed import encode
from isthmus.ports.traced import (
    TracedBody,
    TracedCall,
    TracedCheck,
    TracedError,
    TracedItem,
    TracedRetry,
    TracedTool,
)

NO_BODY: Final = TracedBody()
_LONG: Final = 65_536
"""Bytes of an item that take a moment to write."""
_encode: Final = msgspec.json.Encoder().encode


def happened(
    draft: Draft, bodies: Bodies, contents: Contents, size: int
) -> tuple[Sequence[TracedCall], Sequence[TracedTool], Sequence[TracedCheck], int]:
    """And how many retries there were. `size`: of the request, where it is large."""
    calls: list[TracedCall] = []
    tools: list[TracedTool] = []
    checks: list[TracedCheck] = []
    ended, retries = draft.ended, 0
    if ended is None:
        return calls, tools, checks, retries
    began = draft.began - draft.over + ended.seconds
    for at, fact in ended.steps:
        match fact:
            case Sent():
                calls.append(_call(at - began, fact, bodies, contents, size))
            case Accepted() if calls:
                calls[-1] = replace(calls[-1], first_byte=fact.seconds)
            case Retried() if calls:
                retries += 1
                retry = TracedRetry(trace_error(fact.failure), fact.wait, fact.elsewhere)
                calls[-1] = replace(calls[-1], retries=(*calls[-1].retries, retry))
            case AttemptFailed() if calls:
                calls[-1] = replace(calls[-1], error=trace_error(fact.failure))
            case ToolRan():
                tools.append(_tool(at - began, fact, bodies, contents))
            case ContractChecked():
                checks.append(_check(fact, contents))
    return calls, tools, checks, retries


def asked_of(planned: Planned) -> Any:
    """The request with its input as items, in the place where it stood, and without credentials."""
    asked = planned.asked
    if planned.items and "input" in asked:
        asked = {**asked, "input": list(planned.items)}
    return showable_body(cast(Any, asked))


def trace_item(item: Mapping[str, Any]) -> TracedItem:
    size = len(_encode(item))
    if size > _LONG:
        time.sleep(0)  # others have their turn
    return TracedItem(item["type"], item.get("status") or "", size, item.get("name") or "")


def trace_error(failure: IsthmusError) -> TracedError:
    return TracedError(
        failure.code,
        failure.message,
        failure.param,
        failure.provider or "",
        failure.status,
        failure.request_id or "",
    )


def _call(at: float, sent: Sent, bodies: Bodies, contents: Contents, size: int) -> TracedCall:
    body = sent.body
    traced = NO_BODY if body is None else contents.keep(bodies.read(body, size), body)
    return TracedCall(sent.provider, sent.model, sent.attempt, sent.why, at, traced, key=sent.key)


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
