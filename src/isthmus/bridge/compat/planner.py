"""`plan_bridge_compatibility`: one decision for every field that the request carries.

Nested options are decided one by one (`reasoning.effort`, `text.format`); `tools` and `tool_choice` belong to the tools
room. A plan may also hold decisions that no field asked for (the model's maximum, a switch that every request needs):
they are there because something is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities
from isthmus.bridge.compat.format import mentions_json, plan_format
from isthmus.bridge.compat.reasoning import ReasoningPlan, plan_reasoning, why_thinking_gives_way
from isthmus.bridge.compat.rules import (
    KEPT_AHEAD,
    apply_rule,
    asks_nothing,
    clamp,
    hindrance,
    ignored,
    rejected,
    supported,
    without_rule,
)
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan, hold_back
from isthmus.bridge.parse import Request
from isthmus.bridge.tools.managed import SOURCES
from isthmus.bridge.tools.survey import ToolSurvey, survey_tools
from isthmus.bridge.types.plan import LIBRARY, Host
from isthmus.protocol.json import JsonObject, nest, without_nulls
from isthmus.protocol.responses import CreateResponse

UPDATE: Final = "configuration_update"
SHOWS_THINKING: Final = ("chat", "messages")
"""Dialects in which thinking is plain text, to be told as what the client asks for."""
_SETTINGS: Final = (("reasoning", "effort"), ("text", "format"))
_TOOL_FIELDS: Final = frozenset({"tools", "tool_choice"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_type_of: Final = itemgetter("type")
_LOGPROBS: Final = "message.output_text.logprobs"


def apply_updates(request: Request, items: Sequence[JsonObject]) -> Request:
    """The request as `configuration_update` items leave it: of each setting the last, since one answer is asked for."""
    if UPDATE not in map(_type_of, items):
        return request
    changed: dict[str, Any] = {}
    for item in items:
        if item["type"] == UPDATE:
            given = [(group, name, (item.get(group) or {}).get(name)) for group, name in _SETTINGS]
            changed |= {group: {name: value} for group, name, value in given if value is not None}
    if not changed:
        return request
    body: Mapping[str, Any] = request.body
    merged = {group: {**(body.get(group) or {}), **options} for group, options in changed.items()}
    return replace(request, body=cast(CreateResponse, {**body, **merged}))


def plan_bridge_compatibility(
    request: Request,
    capabilities: ProviderCapabilities,
    host: Host = LIBRARY,
    *,
    survey: ToolSurvey | None = None,
    history: Sequence[JsonObject] = (),
    replays_reasoning: bool = False,
    thinking_stops: str = "",
) -> CompatibilityPlan:
    """Decide on every field sent; `survey` is that of the request's tools (made here where the caller has none),
    `history` are the items of earlier, stored turns, `thinking_stops` says why they leave no thinking."""
    body = request.body
    if survey is None:
        items = (*history, *request.items)
        survey = survey_tools(body.get("tools"), items, body.get("tool_choice"), capabilities, managed=host.managed)
    reasoning = plan_reasoning(
        (body.get("reasoning") or {}).get("effort"),
        capabilities.reasoning,
        replays_reasoning=replays_reasoning,
        gives_way=why_thinking_gives_way(survey, capabilities.reasoning, thinking_stops),
    )
    planner = _Planner(request, body, capabilities, host, reasoning, survey, history)
    decisions, allow = planner.decide(), capabilities.allow
    told = decisions if allow is None else [hold_back(one, allow) for one in decisions]
    return CompatibilityPlan(tuple(told), reasoning.thinking)


class _Planner(NamedTuple):
    """One request on its way through the fields; each method decides on one kind of field."""

    request: Request
    body: CreateResponse
    capabilities: ProviderCapabilities
    host: Host
    reasoning: ReasoningPlan
    survey: ToolSurvey
    history: Sequence[JsonObject]

    def decide(self) -> Iterator[CompatibilityDecision]:
        body: Mapping[str, Any] = self.body
        for name, value in body.items():
            if value is None or name in _TOOL_FIELDS:
                continue  # a `null` says no more than an absent field
            if name in ("reasoning", "text"):
                yield from self._options(name, value)
            else:
                yield self._field(_join("", name), value)
        if body.get("reasoning") is None and self.reasoning.decision is not None:
            yield self.reasoning.decision
        if body.get("max_output_tokens") is None and (limit := self._default_limit()) is not None:
            yield limit

    def _options(self, group: str, options: Mapping[str, Any]) -> Iterator[CompatibilityDecision]:
        """Nested options, one by one; the effort was decided on before all else."""
        effort = self.reasoning.decision if group == "reasoning" else None
        given = [(_join(group, name), value) for name, value in options.items() if value is not None]
        rest = [(path, value) for path, value in given if path != "reasoning.effort"]
        if effort is not None:
            yield effort
        elif not rest:
            yield supported(group, "asks for nothing; nothing to send")
        for path, value in rest:
            yield self._field(path, value)

    def _field(self, path: str, value: Any) -> CompatibilityDecision:
        return _FIELDS.get(path, _Planner._other)(self, path, value)

    def _summary(self, path: str, value: Any) -> CompatibilityDecision:
        """`generate_summary` is the old name of `summary`; the new one wins where both are there."""
        options = self.body.get("reasoning") or {}
        if path == "reasoning.generate_summary" and options.get("summary") is not None:
            return ignored(path, "`reasoning.summary` says the same, and is the newer name")
        if self._rule(path) is None and self.capabilities.reasoning.summary:
            return supported(path, effective_value=value, sends=nest("reasoning.summary", value))
        if self._rule(path) is None and self.capabilities.dialect in SHOWS_THINKING and value != "none":
            reason = "the provider makes no summaries; where it shows its thinking, that comes in their place"
            # `auto` asks for what there is to be seen, and that is shown.
            return CompatibilityDecision(path, "degraded", reason, effective_value=value, harmless=value == "auto")
        return self._other(path, value)

    def _context(self, path: str, value: Any) -> CompatibilityDecision:
        """Which earlier reasoning goes back: carried out by the history, unless the provider does it itself."""
        rules = self.capabilities.messages
        takes_thoughts = rules.replay != "never" or rules.replay_extras or rules.replay_details
        if self._rule(path) is None and (value == "current_turn" or (value == "all_turns" and takes_thoughts)):
            return supported(path, effective_value=value)
        return self._other(path, value)

    def _format(self, path: str, value: Any) -> CompatibilityDecision:
        return plan_format(
            value,
            self.capabilities.response_formats,
            sends_tools=self.survey.sends,
            says_json=mentions_json(self.body.get("instructions"), (*self.history, *self.request.items)),
        )

    def _model(self, path: str, value: Any) -> CompatibilityDecision:
        used = self.capabilities.model or value
        return supported(path, "" if used == value else f"resolved to `{used}`", effective_value=used)

    def _stream(self, path: str, value: Any) -> CompatibilityDecision:
        """Every Chat-Completions provider streams, so no rule is needed to say so; one can say that it does not."""
        if not value:
            return supported(path, "answered in one piece")
        rule = self._rule(path) or ParameterRule()
        if rule.values is not None and True not in rule.values:
            reason = "the provider answers in one piece; its answer is streamed once it is there"
            return CompatibilityDecision(path, "degraded", reason, False)
        sends = nest(rule.to or path, True)
        if self.capabilities.streaming_usage:
            sends["stream_options"] = {"include_usage": True}
        return supported(path, effective_value=True, sends=sends)

    def _limit(self, path: str, value: Any) -> CompatibilityDecision:
        if value < 1:
            return rejected(path, "must be at least 1", metadata={"error_code": "invalid_value"})
        most = self.capabilities.limits.output
        if most is None or value <= most or self._rule(path) is None:
            return self._other(path, value)
        decision = self._other(path, most)
        if decision.action == "ignored" or path in self.host.honours:
            return decision
        used = decision.effective_value
        reason = f"the model writes at most {most} tokens; {value} is sent as {used}"
        return CompatibilityDecision(path, "degraded", reason, used, decision.sends)

    def _default_limit(self) -> CompatibilityDecision | None:
        path, limits = "max_output_tokens", self.capabilities.limits
        rule = self._rule(path)
        most = limits.output if limits.send_default else limits.default
        if most is None or rule is None:
            return None
        used = clamp(most, rule.low, rule.high)
        reason = "the model's maximum, because the provider's default truncates"
        if not limits.send_default:
            reason = "the provider wants a limit with every request; send one to have another"
        return supported(path, reason, effective_value=used, sends=nest(rule.to or path, used))

    def _count(self, path: str, value: Any) -> CompatibilityDecision:
        if value == 1:
            return without_rule(path, value)
        return rejected(path, "a response holds one answer; send the request several times to get several")

    def _conversation(self, path: str, value: Any) -> CompatibilityDecision:
        if path not in self.host.honours or self.body.get("store") is not False:
            return self._other(path, value)
        reason = "its items stand before `input`; nothing is added to it, because `store` is `false`"
        return CompatibilityDecision(path, "degraded", reason)

    def _user(self, path: str, value: Any) -> CompatibilityDecision:
        """Where both identifiers go to one upstream field, the newer one wins."""
        mine, newer = self._rule(path), self._rule("safety_identifier")
        if mine and newer and self.body.get("safety_identifier") is not None:
            to = mine.to or path
            if to == (newer.to or "safety_identifier"):
                return ignored(path, f"`safety_identifier` goes to the same field, `{to}`, and is the newer name")
        return self._other(path, value)

    def _top_logprobs(self, path: str, value: Any) -> CompatibilityDecision:
        if asks_nothing(path, value):
            return without_rule(path, value)
        decision = self._other(path, value)
        if not decision.sends or self.capabilities.dialect != "chat":
            return decision
        return replace(decision, sends={"logprobs": True, **decision.sends})

    def _include(self, path: str, value: list[str]) -> CompatibilityDecision:
        """One decision that lists which of the asked-for extras the answer will have."""
        if not value or path in self.host.honours:
            return self._other(path, value)
        had = [name for name in value if self._has_extra(name)]
        sends: JsonObject = {}
        if self.capabilities.dialect == "chat":
            sends = {"logprobs": True} if _LOGPROBS in had else {}
        elif self._rule(path) is not None:
            asked = [name for name in had if not self._made_here(name)]
            sends = {"include": asked} if asked else {}
        lost = [name for name in value if name not in had]
        if not lost:
            return supported(path, effective_value=had, sends=sends)
        reason = f"the answer will not have {', '.join(f'`{name}`' for name in lost)}: the provider does not report it"
        if not had:
            return ignored(path, reason, metadata={"ignored": lost})
        return CompatibilityDecision(path, "degraded", reason, had, sends, metadata={"ignored": lost})

    def _has_extra(self, name: str) -> bool:
        if name == "reasoning.encrypted_content":
            return True  # our own envelope, whatever the provider does
        if self._made_here(name):
            return True
        if name != _LOGPROBS:
            return self._rule("include") is not None
        rule = self._rule("top_logprobs") or self._rule("logprobs")
        return rule is not None and not hindrance(
            rule, thinking=self.reasoning.thinking, streams_tools=self._streams_tools
        )

    def _made_here(self, name: str) -> bool:
        return name == SOURCES and "web_search" in self.survey.managed

    def _tool_calls(self, path: str, value: Any) -> CompatibilityDecision:
        if self.survey.managed and self._rule(path) is None:
            return supported(path, "counted over the tools that run here", effective_value=value)
        return self._other(path, value)

    def _other(self, path: str, value: Any) -> CompatibilityDecision:
        """By the host, by the provider's rule, or not at all."""
        if path in self.host.honours:
            return supported(path, "kept by the gateway, not sent upstream")
        if isinstance(value, dict):
            value = without_nulls(value)
        rule = self._rule(path)
        if rule is None:
            return without_rule(path, value)
        return apply_rule(path, value, rule, thinking=self.reasoning.thinking, streams_tools=self._streams_tools)

    @property
    def _streams_tools(self) -> bool:
        return bool(self.body.get("stream")) and self.survey.sends

    def _rule(self, path: str) -> ParameterRule | None:
        return self.capabilities.parameters.get(path)


def _join(parent: str, name: str) -> str:
    """The path of a field. A name with dots or brackets in it is quoted, so that no two paths are alike."""
    if _PLAIN_NAME.fullmatch(name):
        return f"{parent}.{name}" if parent else name
    return f"{parent}[{msgspec.json.encode(name).decode()}]"


_FIELDS: Final[Mapping[str, Callable[[_Planner, str, Any], CompatibilityDecision]]] = {
    "model": _Planner._model,
    "input": lambda planner, path, value: supported(path, "sent as messages"),
    "instructions": lambda planner, path, value: supported(path, "sent as messages"),
    "stream": _Planner._stream,
    "generate": lambda planner, path, value: supported(path, "" if value else KEPT_AHEAD),
    "max_output_tokens": _Planner._limit,
    "n": _Planner._count,
    "conversation": _Planner._conversation,
    "user": _Planner._user,
    "top_logprobs": _Planner._top_logprobs,
    "max_tool_calls": _Planner._tool_calls,
    "include": _Planner._include,
    "reasoning.summary": _Planner._summary,
    "reasoning.generate_summary": _Planner._summary,
    "reasoning.context": _Planner._context,
    "text.format": _Planner._format,
}
