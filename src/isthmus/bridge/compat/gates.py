"""Two gates at the end of planning: strict mode, and the provider's list of fields that may leave.

In: decisions (or body fields). Out: the same, with what may not pass turned into a decision that says so.
`apply_strict` is for the decisions of every planner: parameters, tools, items, formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.protocol.json import JsonObject

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
    """In strict mode nothing is degraded or ignored: what cannot be had exactly is rejected."""
    if not strict:
        return decisions
    return tuple(_reject(d) if d.action in ("degraded", "ignored") else d for d in decisions)


def apply_allow_list(
    body_fields: Mapping[str, Any], allow: frozenset[str] | None
) -> tuple[JsonObject, tuple[CompatibilityDecision, ...]]:
    """The last gate before a body leaves: the fields that may go, and one decision for each that may not.

    The decisions' paths are `upstream.<field>`: they speak of the outgoing body, not of the request, whose
    fields have their own decisions already.
    """
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
    return [] if allow is None else [name for name in fields if name not in allow and name not in ESSENTIAL]


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
