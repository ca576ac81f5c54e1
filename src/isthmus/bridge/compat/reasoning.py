"""How hard the model is asked to think, said the provider's way; and whether it will think at all.

In: `reasoning.effort` (or its absence) and `ReasoningSupport`. Out: one decision with the body fields to send.

    mode      asked            sent
    none      anything         nothing; the effort is ignored
    boolean   `none`           the switch is off
              anything else    the switch is on; the grade is lost, and said to be
    native    on the scale     as it is
              off the scale    the vendor's own mapping, or the nearest on the scale: ties go to the stronger,
                               and an effort other than `none` never becomes `none`
              `none`           off, or the weakest on the scale where thinking can not be switched off
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from isthmus.bridge.capabilities import EFFORTS, ReasoningSupport
from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.bridge.merge import contains, deep_merge, nest
from isthmus.bridge.tools.survey import ToolSurvey
from isthmus.protocol.json import JsonObject

_ENABLED: Final[JsonObject] = {"thinking": {"type": "enabled"}}
_DISABLED: Final[JsonObject] = {"thinking": {"type": "disabled"}}


@dataclass(frozen=True, slots=True)
class ReasoningPlan:
    """`decision` is `None` when the client asked for nothing and nothing needs to be sent."""

    decision: CompatibilityDecision | None
    thinking: bool


def plan_reasoning(
    effort: str | None, support: ReasoningSupport, *, replays_reasoning: bool = False, gives_way: str = ""
) -> ReasoningPlan:
    """Decide on `reasoning.effort`; `gives_way` says why thinking must be off here, if it must."""
    fate = _unset(support) if effort is None else _asked(effort, support)
    if fate.action == "rejected":
        return ReasoningPlan(_decision("reasoning.effort", fate), False)
    fate = _with_fragments(fate, support, replays_reasoning, explicit=effort is not None)
    if gives_way and fate.thinking:
        fate = _give_way(fate, support, gives_way)
    path = "reasoning" if effort is None else "reasoning.effort"
    said = effort is not None or fate.sends or fate.action != "supported"
    return ReasoningPlan(_decision(path, fate) if said else None, fate.thinking)


def why_thinking_gives_way(survey: ToolSurvey, support: ReasoningSupport) -> str:
    """Why thinking must give way to the tools that are sent, or to a forced choice of one; empty: it need not."""
    if not support.with_tools and survey.sends:
        return "the provider refuses tools while the model thinks"
    free, forced = survey.support.while_thinking, survey.forced
    if free is not None and forced is not None and forced not in free and forced in survey.support.supported:
        return "the provider refuses a forced tool choice while the model thinks"
    return ""


@dataclass(frozen=True, slots=True)
class _Fate:
    action: Action
    thinking: bool
    sends: Mapping[str, Any]
    effective: Any = None
    reason: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def _decision(path: str, fate: _Fate) -> CompatibilityDecision:
    return CompatibilityDecision(
        path, fate.action, fate.reason, fate.effective, fate.sends, metadata=fate.metadata or {}
    )


def _unset(support: ReasoningSupport) -> _Fate:
    """The client names no effort: the vendor's default, unless its file prefers one side."""
    off = _off(support)
    if support.unset == "off" and off is not None:
        return _Fate("supported", False, off, "none", "no effort asked for: thinking is left off")
    on = _on(support)
    if support.unset == "on" and on:
        return _Fate("supported", True, on, None, "no effort asked for: thinking is left on")
    return _Fate("supported", support.default_on, {}, None, "no effort asked for: the model's own default holds")


def _asked(effort: str, support: ReasoningSupport) -> _Fate:
    known = effort in EFFORTS or effort == "ultra" or effort in support.scale or effort in support.map
    if not known:
        allowed = ", ".join(f"`{one}`" for one in EFFORTS)
        return _Fate(
            "rejected",
            False,
            {},
            reason=f"`{effort}` is not an effort; send one of {allowed}",
            metadata={"error_code": "invalid_value", "allowed": list(EFFORTS)},
        )
    match support.effort:
        case "none":
            return _mode_none(effort, support)
        case "boolean":
            return _mode_boolean(effort, support)
        case "native":
            return _mode_native(effort, support)


def _mode_none(effort: str, support: ReasoningSupport) -> _Fate:
    if effort == "none" and not support.default_on:
        return _Fate("supported", False, {}, "none", "the model does not think unless told to; nothing to send")
    return _Fate("ignored", support.default_on, {}, reason="the provider has no setting for reasoning effort")


def _mode_boolean(effort: str, support: ReasoningSupport) -> _Fate:
    on = _on(support)
    if effort != "none":
        reason = f"the provider can only switch thinking on or off; `{effort}` switches it on"
        return _Fate("degraded", True, on, "enabled", reason)
    off = _off(support)
    if off is None:
        return _Fate("degraded", True, on, "enabled", "the model can not be kept from thinking")
    return _Fate("supported", False, off, "disabled")


def _mode_native(effort: str, support: ReasoningSupport) -> _Fate:
    used = _on_scale(effort, support)
    if used is None:
        return _Fate("ignored", support.default_on, {}, reason=f"nothing on the provider's scale stands for `{effort}`")
    if used == "none":
        sends, thinking = _off(support) or nest(support.to, "none"), False
    else:
        sends, thinking = deep_merge(support.on, nest(support.to, used)), True
    # `ultra` is another name for `max`; to say so is not to change anything.
    if used == effort or (effort, used) == ("ultra", "max"):
        return _Fate("supported", thinking, sends, used)
    if effort == "none":
        reason = f"the model can not be kept from thinking; `{used}` is the least it does"
    else:
        scale = ", ".join(f"`{one}`" for one in support.scale) or "a scale of its own"
        reason = f"the provider takes {scale}; `{effort}` is sent as `{used}`"
    return _Fate("degraded", thinking, sends, used, reason)


def _on_scale(effort: str, support: ReasoningSupport) -> str | None:
    """The vendor's word for an effort; `None` where nothing on its scale can stand for it."""
    for spelling in (effort, "max") if effort == "ultra" else (effort,):
        if spelling in support.map:
            return support.map[spelling]
        if spelling in support.scale:
            return spelling
    wanted = "max" if effort == "ultra" else effort
    if not support.scale or (wanted == "none" and support.off):
        return wanted
    if wanted not in EFFORTS:
        return None
    rank = EFFORTS.index(wanted)
    ranks = [EFFORTS.index(one) for one in support.scale if one in EFFORTS and one != "none"]
    if not ranks:
        return None
    return EFFORTS[min(ranks, key=lambda one: (abs(one - rank), -one))]


def _on(support: ReasoningSupport) -> Mapping[str, Any]:
    """What switches thinking on; a boolean mode without words of its own speaks the common ones."""
    if support.effort == "boolean" and not support.on and not support.off:
        return _ENABLED
    return support.on


def _off(support: ReasoningSupport) -> Mapping[str, Any] | None:
    """What switches thinking off; `None` where nothing does."""
    match support.effort:
        case "boolean" if not support.on and not support.off:
            return _DISABLED
        case "native" if "none" in support.scale:
            return deep_merge(support.off, nest(support.to, "none"))
    return support.off or None


def _with_fragments(fate: _Fate, support: ReasoningSupport, replays: bool, *, explicit: bool) -> _Fate:
    """Add what every request carries, and what replayed reasoning needs (unless the client said not to think).

    Where the client said nothing, the replay's own switch wins over the default, and decides on thinking.
    """
    history = support.with_history if replays and (fate.thinking or not explicit) else {}
    if not support.always and not history:
        return fate
    if explicit:
        return replace(fate, sends=deep_merge(support.always, history, fate.sends))
    sends = deep_merge(support.always, fate.sends, history)
    on = _on(support)
    if fate.thinking or not history or not on or not contains(sends, on):
        return replace(fate, sends=sends)
    return replace(
        fate, sends=sends, thinking=True, effective=None, reason="earlier reasoning goes back: thinking stays on"
    )


def _give_way(fate: _Fate, support: ReasoningSupport, why: str) -> _Fate:
    """Tools and thinking exclude each other here: the tools win, if thinking can be switched off."""
    off = _off(support)
    if off is None:
        return fate
    reason = f"{why}; thinking is off for this request"
    return _Fate("degraded", False, deep_merge(support.always, off), "none", reason)
