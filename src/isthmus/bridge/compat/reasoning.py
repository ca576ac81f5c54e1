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
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from isthmus.bridge.capabilities import EFFORTS, ReasoningSupport
from isthmus.bridge.compat.rules import ignored, rejected, supported
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.tools.survey import ToolSurvey
from isthmus.protocol.json import JsonObject, contains, deep_merge, nest

_ENABLED: Final[JsonObject] = {"thinking": {"type": "enabled"}}
_DISABLED: Final[JsonObject] = {"thinking": {"type": "disabled"}}
_PATH: Final = "reasoning.effort"


class ReasoningPlan(NamedTuple):
    """`decision` is `None` when the client asked for nothing and nothing needs to be sent."""

    decision: CompatibilityDecision | None
    thinking: bool


_Fate = tuple[CompatibilityDecision, bool]


def plan_reasoning(
    effort: str | None, support: ReasoningSupport, *, replays_reasoning: bool = False, gives_way: str = ""
) -> ReasoningPlan:
    """Decide on `reasoning.effort`; `gives_way` says why thinking must be off here, if it must."""
    decision, thinking = _unset(support) if effort is None else _asked(effort, support)
    if decision.action == "rejected":
        return ReasoningPlan(decision, False)
    if support.always or replays_reasoning:
        decision, thinking = _add_fragments(decision, thinking, support, replays_reasoning, effort is not None)
    if gives_way and thinking and (off := _off(support)) is not None:
        # Tools and thinking exclude each other here: the tools win, if thinking can be switched off.
        reason, sends = f"{gives_way}; thinking is off for this request", deep_merge(support.always, off)
        decision, thinking = CompatibilityDecision(decision.path, "degraded", reason, "none", sends), False
    said = effort is not None or decision.sends or decision.action != "supported"
    return ReasoningPlan(decision if said else None, thinking)


def why_thinking_gives_way(survey: ToolSurvey, support: ReasoningSupport, lost: str = "") -> str:
    """Why thinking must give way to the tools that are sent, to a forced choice of one, or to a history that lost what
    it needs (`lost` says so); empty: it need not."""
    if lost:
        return lost
    if not support.with_tools and survey.sends:
        return "the provider refuses tools while the model thinks"
    free, forced = survey.support.while_thinking, survey.forced
    if free is not None and forced is not None and forced not in free and forced in survey.support.supported:
        return "the provider refuses a forced tool choice while the model thinks"
    return ""


def _unset(support: ReasoningSupport) -> _Fate:
    """The client names no effort: the vendor's default, unless its file prefers one side."""
    if support.unset == "off" and (off := _off(support)) is not None:
        reason = "no effort asked for: thinking is left off"
        return supported("reasoning", reason, effective_value="none", sends=off), False
    if support.unset == "on" and (on := _on(support)):
        return supported("reasoning", "no effort asked for: thinking is left on", sends=on), True
    return supported("reasoning", "no effort asked for: the model's own default holds"), support.default_on


def _asked(effort: str, support: ReasoningSupport) -> _Fate:
    if not (effort in EFFORTS or effort == "ultra" or effort in support.scale or effort in support.map):
        allowed = ", ".join(f"`{one}`" for one in EFFORTS)
        facts = {"error_code": "invalid_value", "allowed": list(EFFORTS)}
        return rejected(_PATH, f"`{effort}` is not an effort; send one of {allowed}", metadata=facts), False
    match support.effort:
        case "native":
            return _native(effort, support)
        case "boolean":
            off = _off(support)
            if effort == "none" and off is not None:
                return supported(_PATH, effective_value="disabled", sends=off), False
            reason = f"the provider can only switch thinking on or off; `{effort}` switches it on"
            if effort == "none":
                reason = "the model can not be kept from thinking"
            return CompatibilityDecision(_PATH, "degraded", reason, "enabled", _on(support)), True
    if effort == "none" and not support.default_on:
        return _not_thinking()
    return ignored(_PATH, "the provider has no setting for reasoning effort"), support.default_on


def _not_thinking() -> _Fate:
    reason = "the model does not think unless told to; nothing to send"
    return supported(_PATH, reason, effective_value="none"), False


def _native(effort: str, support: ReasoningSupport) -> _Fate:
    if effort == "none" and support.scale and not support.default_on and _off(support) is None:
        return _not_thinking()
    used = _on_scale(effort, support)
    if used is None:
        return ignored(_PATH, f"nothing on the provider's scale stands for `{effort}`"), support.default_on
    thinking = used != "none"
    if thinking:
        sends: Mapping[str, Any] = deep_merge(support.on, nest(support.to, support.budgets.get(used, used)))
    else:
        sends = _off(support) or nest(support.to, "none")
    # `ultra` is another name for `max`; to say so is not to change anything.
    if used == effort or (effort, used) == ("ultra", "max"):
        return supported(_PATH, effective_value=used, sends=sends), thinking
    scale = ", ".join(f"`{one}`" for one in support.scale) or "a scale of its own"
    reason = f"the provider takes {scale}; `{effort}` is sent as `{used}`"
    if effort == "none":
        reason = f"the model can not be kept from thinking; `{used}` is the least it does"
    return CompatibilityDecision(_PATH, "degraded", reason, used, sends), thinking


def _on_scale(effort: str, support: ReasoningSupport) -> str | None:
    """The vendor's word for an effort; `None` where nothing on its scale can stand for it."""
    wanted = "max" if effort == "ultra" else effort
    for spelling in (effort, wanted):
        if spelling in support.map:
            return support.map[spelling]
        if spelling in support.scale:
            return spelling
    if not support.scale or (wanted == "none" and support.off):
        return wanted
    ranks = [EFFORTS.index(one) for one in support.scale if one in EFFORTS and one != "none"]
    if not ranks or wanted not in EFFORTS:
        return None
    rank = EFFORTS.index(wanted)
    return EFFORTS[min(ranks, key=lambda one: (abs(one - rank), -one))]


def _on(support: ReasoningSupport) -> Mapping[str, Any]:
    """What switches thinking on; a boolean mode without words of its own speaks the common ones."""
    return support.on if support.effort != "boolean" or support.on or support.off else _ENABLED


def _off(support: ReasoningSupport) -> Mapping[str, Any] | None:
    """What switches thinking off; `None` where nothing does."""
    match support.effort:
        case "boolean" if not support.on and not support.off:
            return _DISABLED
        case "native" if "none" in support.scale:
            return deep_merge(support.off, nest(support.to, "none"))
    return support.off or None


def _add_fragments(
    decision: CompatibilityDecision, thinking: bool, support: ReasoningSupport, replays: bool, explicit: bool
) -> _Fate:
    """Add what every request carries, and what replayed reasoning needs (unless the client said not to think). Where
    the client said nothing, the replay's own switch wins over the default, and decides on thinking."""
    history = support.with_history if replays and (thinking or not explicit) else {}
    if explicit:
        return replace(decision, sends=deep_merge(support.always, history, decision.sends)), thinking
    sends = deep_merge(support.always, decision.sends, history)
    on = _on(support)
    if thinking or not history or not on or not contains(sends, on):
        return replace(decision, sends=sends), thinking
    reason = "earlier reasoning goes back: thinking stays on"
    return replace(decision, sends=sends, effective_value=None, reason=reason), True
