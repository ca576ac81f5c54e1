"""`plan_bridge_compatibility`: one decision for every field that the request carries.

In: a request, what its target can do, what the host honours. Out: a `CompatibilityPlan`. Nested options are
decided one by one (`reasoning.effort`, `text.format`); `tools` and `tool_choice` belong to the tools room. A plan
may also hold decisions that no field asked for (the model's maximum, a switch that every request needs): they
are there because something is sent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isthmus.bridge.capabilities import ParameterRule, ProviderCapabilities
from isthmus.bridge.compat.format import mentions_json, plan_format
from isthmus.bridge.compat.gates import hold_back
from isthmus.bridge.compat.reasoning import ReasoningPlan, plan_reasoning, why_thinking_gives_way
from isthmus.bridge.compat.rules import apply_rule, asks_nothing, clamp, ignored, rejected, supported, without_rule
from isthmus.bridge.compat.services import SERVICES
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.bridge.host import LIBRARY, Host
from isthmus.bridge.merge import deep_merge, nest
from isthmus.bridge.parse import Request
from isthmus.bridge.tools.survey import ToolSurvey, survey_tools
from isthmus.protocol.json import JsonObject, without_nulls
from isthmus.protocol.responses import CreateResponse


def plan_bridge_compatibility(
    request: Request,
    capabilities: ProviderCapabilities,
    host: Host = LIBRARY,
    *,
    survey: ToolSurvey | None = None,
    history: Sequence[JsonObject] = (),
    replays_reasoning: bool = False,
) -> CompatibilityPlan:
    """Decide on every field sent.

    `survey` is that of the request's tools (made here where the caller has none); `history` are the items of earlier,
    stored turns; `replays_reasoning` when earlier reasoning goes back to the model.
    """
    if survey is None:
        body = request.body
        survey = survey_tools(body.get("tools"), (*history, *request.items), body.get("tool_choice"), capabilities)
    options: Mapping[str, Any] = request.body.get("reasoning") or {}
    reasoning = plan_reasoning(
        options.get("effort"),
        capabilities.reasoning,
        replays_reasoning=replays_reasoning,
        gives_way=why_thinking_gives_way(survey, capabilities.reasoning),
    )
    planner = _Planner(request, capabilities, host, reasoning, survey, history)
    return CompatibilityPlan(hold_back(planner.decide(), capabilities.allow), thinking=reasoning.thinking)


_TOOL_FIELDS: Final = frozenset({"tools", "tool_choice"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_LOGPROBS: Final = "message.output_text.logprobs"


@dataclass(frozen=True, slots=True)
class _Planner:
    """One request on its way through the fields; each method decides on one kind of field."""

    request: Request
    capabilities: ProviderCapabilities
    host: Host
    reasoning: ReasoningPlan
    survey: ToolSurvey
    history: Sequence[JsonObject]

    @property
    def body(self) -> CreateResponse:
        return self.request.body

    def decide(self) -> Iterator[CompatibilityDecision]:
        # A `null` says no more than an absent field.
        body: Mapping[str, Any] = self.body
        sent = {name: value for name, value in body.items() if value is not None and name not in _TOOL_FIELDS}
        for name, value in sent.items():
            if name == "reasoning":
                yield from self._reasoning(value)
            elif name == "text":
                yield from self._text(value)
            else:
                yield _FIELDS.get(name, _Planner._other)(self, _join("", name), value)
        if "reasoning" not in sent and self.reasoning.decision is not None:
            yield self.reasoning.decision
        if "max_output_tokens" not in sent:
            yield from self._default_limit()

    # Nested options

    def _reasoning(self, options: Mapping[str, Any]) -> Iterator[CompatibilityDecision]:
        rest = [(name, value) for name, value in options.items() if name != "effort" and value is not None]
        if self.reasoning.decision is not None:
            yield self.reasoning.decision
        elif not rest:
            yield supported("reasoning", "asks for nothing; nothing to send")
        for name, value in rest:
            if name in ("summary", "generate_summary"):
                yield self._summary(f"reasoning.{name}", value)
            elif name == "context":
                yield self._context("reasoning.context", value)
            else:
                yield self._other(_join("reasoning", name), value)

    def _summary(self, path: str, value: Any) -> CompatibilityDecision:
        """`generate_summary` is the old name of `summary`; the new one wins where both are there."""
        options = self.body.get("reasoning") or {}
        if path == "reasoning.generate_summary" and options.get("summary") is not None:
            return ignored(path, "`reasoning.summary` says the same, and is the newer name")
        if self.capabilities.reasoning.summary and path not in self.capabilities.parameters:
            return supported(path, effective_value=value, sends=nest("reasoning.summary", value))
        if self.capabilities.dialect == "chat" and path not in self.capabilities.parameters and value != "none":
            reason = "the provider makes no summaries; where it shows its thinking, that comes in their place"
            return CompatibilityDecision(path, "degraded", reason, effective_value=value)
        return self._other(path, value)

    def _context(self, path: str, value: Any) -> CompatibilityDecision:
        """Which earlier reasoning goes back: carried out by the history, unless the provider does it itself."""
        if self._rule(path) is None and (value == "current_turn" or (value == "all_turns" and self._takes_thoughts())):
            return supported(path, effective_value=value)
        return self._other(path, value)

    def _takes_thoughts(self) -> bool:
        rules = self.capabilities.messages
        return rules.replay != "never" or bool(rules.replay_extras or rules.replay_details)

    def _text(self, options: Mapping[str, Any]) -> Iterator[CompatibilityDecision]:
        sent = [(name, value) for name, value in options.items() if value is not None]
        if not sent:
            yield supported("text", "asks for nothing; nothing to send")
        for name, value in sent:
            if name == "format":
                yield plan_format(
                    value,
                    self.capabilities.response_formats,
                    sends_tools=self.survey.sends,
                    says_json=mentions_json(self.body.get("instructions"), (*self.history, *self.request.items)),
                )
            else:
                yield self._other(_join("text", name), value)

    # Top-level fields

    def _model(self, path: str, value: Any) -> CompatibilityDecision:
        used = self.capabilities.model or value
        return supported(path, "" if used == value else f"resolved to `{used}`", effective_value=used)

    def _messages(self, path: str, value: Any) -> CompatibilityDecision:
        return supported(path, "sent as messages")

    def _stream(self, path: str, value: Any) -> CompatibilityDecision:
        """Every Chat-Completions provider streams, so no rule is needed to say so; one can say that it does not."""
        if not value:
            return supported(path, "answered in one piece")
        rule = self._rule(path) or ParameterRule()
        if rule.values is not None and True not in rule.values:
            return CompatibilityDecision(
                path, "degraded", "the provider answers in one piece; its answer is streamed once it is there", False
            )
        sends = nest(rule.to or path, True)
        if self.capabilities.streaming_usage:
            sends = deep_merge(sends, {"stream_options": {"include_usage": True}})
        return supported(path, effective_value=True, sends=sends)

    def _limit(self, path: str, value: Any) -> CompatibilityDecision:
        if value < 1:
            return rejected(path, "must be at least 1", metadata={"error_code": "invalid_value"})
        rule, most = self._rule(path), self.capabilities.limits.output
        used = value if most is None else min(value, most)
        if rule is None or used == value:
            return self._other(path, value)
        decision = apply_rule(path, used, rule, thinking=self.reasoning.thinking)
        if decision.action == "ignored":
            return decision
        reason = f"the model writes at most {most} tokens; {value} is sent as {decision.effective_value}"
        return CompatibilityDecision(path, "degraded", reason, decision.effective_value, decision.sends)

    def _default_limit(self) -> Iterator[CompatibilityDecision]:
        limits, rule = self.capabilities.limits, self._rule("max_output_tokens")
        if not limits.send_default or limits.output is None or rule is None:
            return
        used = clamp(limits.output, rule.low, rule.high)
        yield supported(
            "max_output_tokens",
            "the model's maximum, because the provider's default truncates",
            effective_value=used,
            sends=nest(rule.to or "max_output_tokens", used),
        )

    def _count(self, path: str, value: Any) -> CompatibilityDecision:
        if value == 1:
            return without_rule(path, value)
        return rejected(path, "a response holds one answer; send the request several times to get several")

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
        return CompatibilityDecision(
            path, decision.action, decision.reason, decision.effective_value, {"logprobs": True, **decision.sends}
        )

    def _include(self, path: str, value: list[str]) -> CompatibilityDecision:
        """One decision that lists which of the asked-for extras the answer will have."""
        if not value or path in self.host.honours:
            return self._other(path, value)
        had = [name for name in value if self._has_extra(name)]
        sends: JsonObject = {}
        if self.capabilities.dialect == "chat":
            sends = {"logprobs": True} if _LOGPROBS in had else {}
        elif self._rule(path) is not None:
            sends = {"include": had} if had else {}
        lost = [name for name in value if name not in had]
        if not lost:
            return supported(path, effective_value=had, sends=sends)
        reason = f"the answer will not have {', '.join(f'`{name}`' for name in lost)}: the provider does not report it"
        facts = {"ignored": lost}
        if not had:
            return ignored(path, reason, metadata=facts)
        return CompatibilityDecision(path, "degraded", reason, had, sends, metadata=facts)

    def _has_extra(self, name: str) -> bool:
        if name == "reasoning.encrypted_content":
            return True  # our own envelope, whatever the provider does
        if name != _LOGPROBS:
            return self._rule("include") is not None
        rule = self._rule("top_logprobs") or self._rule("logprobs")
        return rule is not None and (rule.while_thinking or not self.reasoning.thinking)

    def _other(self, path: str, value: Any) -> CompatibilityDecision:
        """By the host, by the provider's rule, or not at all."""
        if path in self.host.honours:
            return supported(path, "kept by the gateway, not sent upstream")
        if isinstance(value, dict):
            value = without_nulls(value)
        rule = self._rule(path)
        if rule is not None:
            return apply_rule(path, value, rule, thinking=self.reasoning.thinking)
        service = SERVICES.get(path)
        return without_rule(path, value) if service is None else service(path, value)

    def _rule(self, path: str) -> ParameterRule | None:
        return self.capabilities.parameters.get(path)


def _join(parent: str, name: str) -> str:
    """The path of a field. A name with dots or brackets in it is quoted, so that no two paths are alike."""
    if _PLAIN_NAME.fullmatch(name):
        return f"{parent}.{name}" if parent else name
    return f"{parent}[{msgspec.json.encode(name).decode()}]"


_FIELDS: Final[Mapping[str, Callable[[_Planner, str, Any], CompatibilityDecision]]] = {
    "model": _Planner._model,
    "input": _Planner._messages,
    "instructions": _Planner._messages,
    "stream": _Planner._stream,
    "max_output_tokens": _Planner._limit,
    "n": _Planner._count,
    "user": _Planner._user,
    "top_logprobs": _Planner._top_logprobs,
    "include": _Planner._include,
}
