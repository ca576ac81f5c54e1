"""What was decided about a request, and how the client and the operator get to see it.

A `CompatibilityDecision` is made for every field, tool, item and format that a request carries; a
`CompatibilityDiagnostic` is the visible record of each one that is not plainly *supported*.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, Literal, cast

import msgspec
from msgspec.structs import replace

from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused
from isthmus.protocol.json import JsonObject

_action_of: Final = attrgetter("action")
Action = Literal["supported", "degraded", "ignored", "rejected"]
Severity = Literal["warn", "error"]

# Every code that a diagnostic may carry, with its meaning. `docs/reference/diagnostics.md` lists the same.
CODES: Final[Mapping[str, str]] = {
    "bridge.param.ignored": "A parameter or tool type has no counterpart upstream; the request went on without it.",
    "bridge.param.degraded": "A parameter was mapped to the nearest thing the provider accepts.",
    "bridge.param.unsupported": "A parameter cannot be honoured at all; the request was refused.",
    "bridge.param.learned": "The server refused a parameter by name; it is left out for a while, as the lesson says.",
    "bridge.tool.compatibility": "A tool or tool choice is not native to the provider; the action says what was done.",
    "bridge.tool.schema_projected": "Schema keywords the provider refuses were moved into descriptions.",
    "bridge.tool.unknown_call": "The model called a tool that was never declared; passed on as a plain function call.",
    "bridge.tool.call_suppressed": "A call that is not allowed, has no name, or goes beyond the budget was dropped.",
    "bridge.tool.call_fallback": "A call's arguments do not fit its tool type; it came back as a `function_call`.",
    "bridge.tool.call_incomplete": "A call was cut off by a length or filter stop; it is marked `incomplete`.",
    "bridge.tool.arguments_ignored": "A call carried arguments that its item has no place for, or that came too late.",
    "bridge.tool.input_repaired": "A custom tool's input was repaired with certainty (fence, envelope, wrapper).",
    "bridge.tool.grammar_mismatch": "A custom tool's input does not match the grammar that the client gave.",
    "bridge.tool.grammar_unchecked": "A custom tool's input could not be checked against its grammar.",
    "bridge.item.degraded": "An input item or content part was translated into the nearest thing the model can read.",
    "bridge.item.ignored": "An input item or content part has no meaning for this model and was left out.",
    "bridge.item.unsupported": "An input item or content part cannot be sent to this model; the request was refused.",
    "bridge.history.repaired": "The conversation was not a valid chat sequence; the smallest repair was made.",
    "bridge.attempt.failed": "The model that was asked for failed before it said anything; a fallback answered.",
    "bridge.response.answer_cut": "The answer was longer than this gateway reads; the response is `incomplete`.",
    "bridge.response.length_untold": "The server called an answer complete that used the whole limit; `incomplete`.",
    "bridge.response.invalid_output_format": "The answer does not match the requested JSON format.",
    "bridge.response.output_unchecked": "The answer could not be checked against the requested JSON format in time.",
    "bridge.response.output_cleaned": "Fences or prose around the requested JSON were removed.",
    "bridge.response.output_unclean": "The requested JSON came amid other text that was streamed already; it stayed.",
    "bridge.response.compaction_failed": "The model wrote no summary; the conversation went on as it was.",
    "bridge.response.part_ignored": "The answer held something that has no place in a Response; it was left out.",
    "bridge.hook.changed": "A hook of this gateway's operator changed the request, what was sent, or the answer.",
    "bridge.hook.late": "A hook would have changed a stream that was told already; it stayed as it was.",
    "bridge.hook.skipped": "A hook failed or was too slow; its operator has the request go on without it.",
    "bridge.response.markup_parsed": "Reasoning or tool markup that leaked into the text was parsed out of it.",
}


class CompatibilityDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field, one fate. `sends` are the upstream body fields that carry it out (empty: none). A `msgspec` struct,
    like all that is made many times for one request: a frozen dataclass takes ten times as long."""

    path: str
    action: Action
    reason: str = ""
    effective_value: Any = None
    sends: Mapping[str, Any] = {}
    code: str = ""
    """The diagnostic's code; empty means the parameter code that follows from the action."""
    metadata: Mapping[str, Any] = {}
    harmless: bool = False
    """Whether no word of the answer depends on it (marks for a prompt cache, who asks): told, and never refused."""


class CompatibilityDiagnostic(msgspec.Struct, frozen=True, omit_defaults=True):
    code: str
    severity: Severity
    path: str
    message: str
    action: Action
    metadata: Mapping[str, Any] = {}

    def to_json(self) -> dict[str, Any]:
        """The shape that travels in the response's `isthmus.diagnostics`."""
        return cast(dict[str, Any], msgspec.to_builtins(self))


class CompatibilityPlan(msgspec.Struct, frozen=True, dict=True):
    """All decisions of one request, in the order in which they were made."""

    decisions: tuple[CompatibilityDecision, ...] = ()
    thinking: bool = False
    """Whether the model will think before it answers: some parameters and tool choices depend on it."""

    @cached_property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        """Made once: the answer, its head, the log and the traces all tell them."""
        told = [decision for decision in self.decisions if decision.action != "supported"]
        return tuple(found for decision in told if (found := diagnose(decision)) is not None)

    @property
    def sends(self) -> list[Mapping[str, Any]]:
        return [decision.sends for decision in self.decisions if decision.sends]

    def decision(self, path: str) -> CompatibilityDecision | None:
        for decision in self.decisions:
            if decision.path == path:
                return decision
        return None


_PARAMETER_CODES: Final[Mapping[Action, str]] = {
    "degraded": "bridge.param.degraded",
    "ignored": "bridge.param.ignored",
    "rejected": "bridge.param.unsupported",
}


def diagnose(decision: CompatibilityDecision) -> CompatibilityDiagnostic | None:
    """The visible record of a decision; a supported one leaves none."""
    if decision.action == "supported":
        return None
    metadata = decision.metadata
    if decision.action == "degraded" and decision.effective_value is not None and "effective_value" not in metadata:
        metadata = {**metadata, "effective_value": decision.effective_value}
    code = decision.code or _PARAMETER_CODES[decision.action]
    severity: Severity = "error" if decision.action == "rejected" else "warn"
    return CompatibilityDiagnostic(code, severity, decision.path, decision.reason, decision.action, metadata)


_ITEM_CODES: Final[Mapping[Action, str]] = {"degraded": "bridge.item.degraded", "ignored": "bridge.item.ignored"}


def decide_item(
    path: str, action: Action, reason: str = "", *, harmless: bool = False, **metadata: Any
) -> CompatibilityDecision:
    code = _ITEM_CODES.get(action, "")
    return CompatibilityDecision(path, action, reason, code=code, metadata=metadata, harmless=harmless)


def repair_history(path: str, reason: str) -> CompatibilityDecision:
    """A decision about the conversation, which was no valid sequence."""
    return CompatibilityDecision(path, "degraded", reason, code="bridge.history.repaired")


def notice(code: str, path: str, message: str, **metadata: Any) -> CompatibilityDiagnostic:
    """A diagnostic about the reply, where something was changed after the plan was made."""
    return CompatibilityDiagnostic(code, "warn", path, message, "degraded", metadata)


# Gates at the end of planning: the client's needs, strict mode, and the provider's list of fields that may leave.

ESSENTIAL: Final = frozenset({"model", "messages", "input"})
"""What a request consists of; no allow-list can mean to hold it back."""

_REJECTED_CODES: Final[Mapping[str, str]] = {
    "bridge.param.ignored": "",
    "bridge.param.degraded": "",
    "bridge.item.ignored": "bridge.item.unsupported",
    "bridge.item.degraded": "bridge.item.unsupported",
}
"""Codes that name an action and so must change with it; the others hold for any action."""


def apply_strict(decisions: tuple[CompatibilityDecision, ...], strict: bool) -> tuple[CompatibilityDecision, ...]:
    """In strict mode nothing that an answer depends on is degraded or ignored: what cannot be had exactly is rejected.
    The rest passes and is told: agents send such fields with every request, and have no switch for them."""
    if not strict:
        return decisions
    return tuple(_reject(d) if d.action in ("degraded", "ignored") and not d.harmless else d for d in decisions)


def apply_needs(decisions: tuple[CompatibilityDecision, ...]) -> tuple[CompatibilityDecision, ...]:
    """For clients that cannot do without them: a hosted tool that nobody runs is rejected, not left out."""
    return tuple(_demand(d) if d.action == "ignored" and "tool" in d.metadata else d for d in decisions)


def _demand(decision: CompatibilityDecision) -> CompatibilityDecision:
    if decision.metadata.get("type") in ("function", "custom"):
        return decision
    reason = f"{decision.reason}; leave it out, or ask a model whose provider runs it"
    return replace(decision, action="rejected", reason=reason)


def apply_allow_list(
    body_fields: Mapping[str, Any], allow: frozenset[str] | None
) -> tuple[JsonObject, tuple[CompatibilityDecision, ...]]:
    """The last gate before a body leaves: the fields that may go, and one decision for each that may not. Their paths
    are `upstream.<field>`: they speak of the outgoing body; the request's fields have decisions of their own."""
    stopped = _stopped(body_fields, allow)
    if not stopped:
        return dict(body_fields), ()
    reason = "the provider's list of accepted fields does not name it"
    decisions = tuple(CompatibilityDecision(f"upstream.{name}", "ignored", reason) for name in stopped)
    return {name: value for name, value in body_fields.items() if name not in stopped}, decisions


def hold_back(decision: CompatibilityDecision, allow: frozenset[str] | None) -> CompatibilityDecision:
    """The same gate for a planned decision, so that a plan never promises what the list will stop."""
    stopped = _stopped(decision.sends, allow) if decision.sends else None
    if not stopped:
        return decision
    kept = {name: value for name, value in decision.sends.items() if name not in stopped}
    reason = f"the provider's list of accepted fields does not name {', '.join(f'`{name}`' for name in stopped)}"
    if decision.reason:
        reason = f"{decision.reason}; {reason}"
    if kept:
        return replace(decision, action="degraded", reason=reason, sends=kept)
    return replace(decision, action="ignored", reason=reason, sends={}, effective_value=None)


def _stopped(fields: Mapping[str, Any], allow: frozenset[str] | None) -> list[str]:
    if allow is None or allow.issuperset(fields):
        return []
    return [name for name in fields if name not in allow and name not in ESSENTIAL]


def _reject(decision: CompatibilityDecision) -> CompatibilityDecision:
    return replace(
        decision,
        action="rejected",
        reason=f"{decision.reason}; strict mode refuses what would be {decision.action}: "
        "leave the field out, choose a model that supports it, or switch strict mode off",
        effective_value=None,
        sends={},
        code=_REJECTED_CODES.get(decision.code, decision.code),
        metadata={**decision.metadata, "strict": True, "otherwise": decision.action},
    )


def refuse_rejected(decisions: tuple[CompatibilityDecision, ...]) -> None:
    """Stop before anything is sent if one decision is a hard blocker; the error names them all."""
    if "rejected" not in map(_action_of, decisions):
        return
    rejected = [decision for decision in decisions if decision.action == "rejected"]
    raise RequestRefused(
        "; ".join(f"`{decision.path}`: {decision.reason}" for decision in rejected),
        code=str(rejected[0].metadata.get("error_code", BRIDGE_REQUEST_UNSUPPORTED_PARAMETER)),
        param=rejected[0].path,
        metadata={"diagnostics": [found.to_json() for found in CompatibilityPlan(tuple(rejected)).diagnostics]},
    )
