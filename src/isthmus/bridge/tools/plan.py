"""Tool planning, once per request: the survey's tools, narrowed by the choice.

In: a `ToolSurvey`, and whether the model will think. Out: a `ToolPlan` that the builder and the assembler both
read. The identity map knows every tool that could be sent, also those that the choice leaves out this time: calls
in the history still need their names.
"""

from __future__ import annotations

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.tools.choice import plan_provider_tool_choice
from isthmus.bridge.tools.declare import TOOL_CODE
from isthmus.bridge.tools.survey import ToolSurvey
from isthmus.bridge.types.tools import ToolDeclarationPlan, ToolPlan
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused


def plan_tools(survey: ToolSurvey, *, thinking: bool = False) -> ToolPlan:
    """Plan all tools of one request; a rejected choice is a decision, too many tools an error."""
    choice = plan_provider_tool_choice(survey.choice, survey.offered, survey.support, thinking)
    keep = choice.keep
    sent = survey.offered if keep is None else tuple(plan for plan in survey.offered if _name(plan) in keep)
    _check_count(len(sent), survey.limit)
    decisions = [plan.decision for plan in survey.declared]
    if survey.given or survey.declared:
        decisions.append(_summarise(survey, len(sent)))
    if choice.decision is not None:
        decisions.append(choice.decision)
    return ToolPlan(
        declarations=sent,
        identities=survey.identities,
        choice=choice,
        decisions=tuple(decisions),
        deferred=survey.deferred,
        allowed=keep,
        instruction=choice.instruction,
    )


def _name(plan: ToolDeclarationPlan) -> str:
    return plan.identity.provider_name if plan.identity is not None else ""


def _check_count(count: int, limit: int | None) -> None:
    if limit is not None and count > limit:
        raise RequestRefused(
            f"`tools` has {count} tools for a provider that takes {limit}; send fewer, or narrow them with "
            "`tool_choice` of type `allowed_tools`",
            code=BRIDGE_REQUEST_UNSUPPORTED_PARAMETER,
            param="tools",
        )


def _summarise(survey: ToolSurvey, sent: int) -> CompatibilityDecision:
    parts = [f"{sent} sent"]
    for action in ("degraded", "ignored"):
        count = sum(plan.decision.action == action for plan in survey.declared)
        if count:
            parts.append(f"{count} {action}")
    if survey.deferred:
        parts.append(f"{len(survey.deferred)} deferred until a search finds them")
    held = len(survey.offered) - sent
    if held:
        parts.append(f"{held} held back by `tool_choice`")
    return CompatibilityDecision("tools", "supported", ", ".join(parts), code=TOOL_CODE)
