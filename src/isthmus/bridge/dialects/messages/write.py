"""A plan and its history → the body of a Messages request. It carries out; it never looks at capabilities.

What the plan decided in fields of its own is put where the protocol wants it: a format and an effort share
`output_config`, a ban on parallel calls is part of the choice, a budget must leave room for the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item, repair_history
from isthmus.bridge.dialects.messages.blocks import text_block
from isthmus.bridge.dialects.messages.cache import place_marks
from isthmus.bridge.dialects.messages.turns import TurnWriter
from isthmus.bridge.history.parts import BREAKPOINT
from isthmus.bridge.projection import close_objects
from isthmus.bridge.types.history import History, opening
from isthmus.bridge.types.plan import Plan, Written
from isthmus.bridge.types.tools import ToolChoicePlan, ToolDeclarationPlan
from isthmus.protocol.json import JsonObject, deep_merge

_LEAST_BUDGET: Final = 1024
_HOSTED: Final[Mapping[str, str]] = {"web_search": "web_search_20250305"}
"""The dated types of tools that the provider runs; each has its plain name beside it."""
_PARALLEL: Final = "disable_parallel_tool_use"


def write(history: History, plan: Plan) -> Written:
    writer = TurnWriter(plan)
    leading = opening(history.turns)
    writer.lead(plan.instructions)
    for said in leading:
        writer.open(said)
    writer.lead(plan.preamble)
    writer.write(history.turns[len(leading) :])
    decisions = writer.decisions
    tools = [_declare(one) for one in plan.tools.declarations if one.identity is not None]
    choice = _choose(plan.tools.choice)
    if not tools and writer.called:
        tools, choice = _stand_in(writer.called, decisions), {"type": "none"}
    planned = deep_merge(*plan.compatibility.sends, plan.extra_body)
    marks = planned.pop("cache_control", None) or {}
    if plan.rules.cache_breakpoints:
        lost = place_marks(tools, writer.system, writer.messages, writer.marked, str(marks.get("ttl", "")))
        if lost:
            reason = "the provider takes four breakpoints; only the last ones were sent"
            decisions.append(decide_item(f"input.{BREAKPOINT}", "ignored", reason, left_out=lost))
    body: JsonObject = {"model": plan.target.model}
    if writer.system:
        body["system"] = writer.system
    body["messages"] = writer.messages
    if tools:
        body["tools"] = tools
        if chosen := _with_parallel(choice, planned.get("tool_choice")):
            body["tool_choice"] = chosen
    rest = {name: value for name, value in planned.items() if name != "tool_choice"}
    return Written(_settle({**body, **rest}, plan, decisions), tuple(decisions))


def again(plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The same request, with each failed answer and the words that ask for a better one behind it."""
    writer = TurnWriter(plan)
    writer.messages = list(plan.body["messages"])
    for answer, words in said:
        if answer.strip():
            writer.add("assistant", [text_block(answer)])
        writer.add("user", [text_block(words)])
    return {**plan.body, "messages": writer.messages}


def go_on(plan: Plan, said: Sequence[Any]) -> JsonObject:
    """The same request with the turn that the provider paused in, as it came: it goes on behind it."""
    return {**plan.body, "messages": [*plan.body["messages"], {"role": "assistant", "content": list(said)}]}


def _declare(declared: ToolDeclarationPlan) -> JsonObject:
    identity = declared.identity
    if identity is None or identity.provider_type != "function":
        kind = str(declared.fields.get("type"))
        return {**declared.fields, "type": _HOSTED.get(kind, kind), "name": kind}
    described = {"description": declared.description} if declared.description else {}
    strict = {"strict": True} if declared.strict else {}
    return {"name": identity.provider_name, **described, "input_schema": declared.parameters, **strict}


def _stand_in(called: Iterable[str], decisions: list[CompatibilityDecision]) -> list[JsonObject]:
    """Calls in the history want their tools declared, also where none may be called any more."""
    reason = "the history calls tools and none is sent; they were declared by name, and may not be called"
    decisions.append(repair_history("tools", reason))
    return [{"name": name, "input_schema": {"type": "object"}} for name in called]


def _choose(choice: ToolChoicePlan) -> JsonObject | None:
    match choice.mode:
        case "auto":
            return {"type": "auto"}
        case "required":
            return {"type": "any"}
        case "named" if choice.identity is not None:
            kind = choice.identity.provider_type
            return {"type": "tool", "name": choice.identity.provider_name if kind == "function" else kind}
    return None


def _with_parallel(choice: JsonObject | None, planned: Any) -> JsonObject | None:
    """A ban on parallel calls is part of the choice, and makes one where there is none."""
    if not (isinstance(planned, dict) and planned.get(_PARALLEL)) or (choice or {}).get("type") == "none":
        return choice
    return {**(choice or {"type": "auto"}), _PARALLEL: True}


def _settle(body: JsonObject, plan: Plan, decisions: list[CompatibilityDecision]) -> JsonObject:
    """The fields that depend on each other."""
    send = plan.contract.send
    if send is not None and send["type"] == "json_schema":
        form = {"type": "json_schema", "schema": close_objects(send["schema"])}
        body["output_config"] = {**body.get("output_config", {}), "format": form}
    if "stop_sequences" in body:
        _settle_stops(body, decisions)
    if "thinking" in body:
        _settle_thinking(body, decisions)
    if "temperature" in body and "top_p" in body:
        del body["top_p"]
        reason = "the model takes `temperature` or `top_p`, not both"
        decisions.append(CompatibilityDecision("upstream.top_p", "ignored", reason))
    return body


def _settle_stops(body: JsonObject, decisions: list[CompatibilityDecision]) -> None:
    given = body.pop("stop_sequences")
    stops = [given] if isinstance(given, str) else list(given)
    kept = [stop for stop in stops if isinstance(stop, str) and stop.strip()]
    if kept:
        body["stop_sequences"] = kept
    if len(kept) < len(stops):
        reason = "the provider takes no stop sequence of white space alone; it was left out"
        decisions.append(CompatibilityDecision("stop", "degraded", reason, kept))


def _settle_thinking(body: JsonObject, decisions: list[CompatibilityDecision]) -> None:
    thinking = dict(body.pop("thinking"))
    if thinking.get("type") in (None, "disabled"):
        thinking.pop("display", None)  # nothing is thought, so nothing is shown
    budget, most = thinking.get("budget_tokens"), body.get("max_tokens")
    if isinstance(budget, int) and isinstance(most, int) and budget >= most:
        used = max(most // 2, _LEAST_BUDGET)
        reason = f"`max_output_tokens` leaves room for {used} tokens of thinking, not for {budget}"
        thinking["budget_tokens"] = used
        if used >= most:
            reason = f"thinking takes at least {_LEAST_BUDGET} tokens, and `max_output_tokens` is {most}: it is off"
            thinking = {"type": "disabled"}
        decisions.append(CompatibilityDecision("upstream.thinking", "degraded", reason, thinking))
    if thinking.get("type") is not None:
        body["thinking"] = thinking
