"""Tool planning, once per request: catalog → decision per tool → names → identity map → choice.

In: the request's tools, items and choice, and the model's capabilities. Out: a `ToolPlan` that the builder
and the assembler both read. The identity map knows every tool that could be sent, also those that the choice
leaves out this time: calls in the history still need their names.
"""

from __future__ import annotations

from collections.abc import Sequence

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.tools.catalog import build_tool_catalog
from isthmus.bridge.tools.choice import plan_provider_tool_choice
from isthmus.bridge.tools.declare import TOOL_CODE, plan_tool_declaration
from isthmus.bridge.tools.names import create_provider_name_allocator
from isthmus.bridge.types.tools import ToolDeclarationPlan, ToolIdentityMap, ToolPlan
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused
from isthmus.protocol.json import JsonObject


def plan_tools(
    tools: Sequence[JsonObject] | None,
    items: Sequence[JsonObject],
    tool_choice: str | JsonObject | None,
    capabilities: ProviderCapabilities,
    *,
    thinking: bool = False,
) -> ToolPlan:
    """Plan all tools of one request; a rejected choice is a decision, too many tools an error."""
    catalog = build_tool_catalog(tools, items)
    allocate = create_provider_name_allocator()
    planned = [plan_tool_declaration(tool, capabilities.tools, allocate) for tool in catalog]
    identities = ToolIdentityMap(tuple(plan.identity for plan in planned if plan.identity is not None))
    offered = [plan for plan in planned if plan.identity is not None]
    choice = plan_provider_tool_choice(tool_choice, offered, capabilities.tool_choice, thinking)
    sent = offered if choice.keep is None else [plan for plan in offered if _name(plan) in choice.keep]
    _check_count(len(sent), capabilities.tools.max)
    decisions = [plan.decision for plan in planned]
    if tools is not None or planned:
        decisions.append(_summarise(planned, len(sent)))
    if choice.decision is not None:
        decisions.append(choice.decision)
    return ToolPlan(
        declarations=tuple(sent),
        identities=identities,
        choice=choice,
        decisions=tuple(decisions),
        allowed=choice.keep,
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


def _summarise(planned: Sequence[ToolDeclarationPlan], sent: int) -> CompatibilityDecision:
    parts = [f"{sent} sent"]
    for action in ("degraded", "ignored"):
        count = sum(plan.decision.action == action for plan in planned)
        if count:
            parts.append(f"{count} {action}")
    held = sum(plan.identity is not None for plan in planned) - sent
    if held:
        parts.append(f"{held} held back by `tool_choice`")
    return CompatibilityDecision("tools", "supported", ", ".join(parts), code=TOOL_CODE)
