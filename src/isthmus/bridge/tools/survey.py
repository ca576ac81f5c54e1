"""The first look at a request's tools: what is declared, what survives for this model, what is forced.

In: the tools wherever they are declared, the client's choice, the model's capabilities. Out: a `ToolSurvey`.
Everything else that depends on tools (may the model think, may a format travel, is a call forced) asks here and
reads neither `tools` nor `tool_choice` itself: a tool that this model is never told of changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.bridge.capabilities import ProviderCapabilities, ToolChoiceSupport
from isthmus.bridge.tools.catalog import build_tool_catalog
from isthmus.bridge.tools.choice import ToolChoice, match_entry, read_tool_choice
from isthmus.bridge.tools.declare import plan_tool_declaration
from isthmus.bridge.tools.names import create_provider_name_allocator
from isthmus.bridge.types.tools import ToolDeclarationPlan, ToolIdentityMap
from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class ToolSurvey:
    declared: tuple[ToolDeclarationPlan, ...]
    """Every tool of the request with its fate, in the order of declaration."""
    offered: tuple[ToolDeclarationPlan, ...]
    """Those that this model can be told of."""
    identities: ToolIdentityMap
    choice: ToolChoice
    forced: str | None
    """`required`, or the provider's type of the one tool that must be called; `None`: the model is free."""
    limit: int | None
    """How many tools the provider takes."""
    support: ToolChoiceSupport
    given: bool
    """Whether the request has a list of tools at all, be it an empty one."""

    @property
    def patient(self) -> frozenset[tuple[str | None, str]]:
        """Namespace and name of the tools whose outputs may come turns later."""
        tools = (plan.source for plan in self.declared)
        return frozenset((tool.namespace, tool.name) for tool in tools if tool.tool.get("async") is True)

    @property
    def sends(self) -> bool:
        """Whether any tool will travel: some are offered, and the choice does not shut them all out."""
        return bool(self.offered) and self.choice.mode != "none"


def survey_tools(
    tools: Sequence[JsonObject] | None,
    items: Sequence[JsonObject],
    tool_choice: str | JsonObject | None,
    capabilities: ProviderCapabilities,
    *,
    stored: int = 0,
) -> ToolSurvey:
    """Look at all tools of one request; the first `stored` items come from earlier turns."""
    allocate = create_provider_name_allocator()
    catalog = build_tool_catalog(tools, items, stored=stored)
    declared = tuple(plan_tool_declaration(tool, capabilities.tools, allocate) for tool in catalog)
    offered = tuple(plan for plan in declared if plan.identity is not None)
    choice = read_tool_choice(tool_choice)
    return ToolSurvey(
        declared=declared,
        offered=offered,
        identities=ToolIdentityMap(tuple(plan.identity for plan in offered if plan.identity is not None)),
        choice=choice,
        forced=_forced(choice, offered),
        limit=capabilities.tools.max,
        support=capabilities.tool_choice,
        given=tools is not None,
    )


def _forced(choice: ToolChoice, offered: Sequence[ToolDeclarationPlan]) -> str | None:
    if choice.mode == "required":
        return "required" if offered else None
    if choice.mode != "named" or not choice.entries:
        return None
    found = match_entry(choice.entries[0], [plan.identity for plan in offered if plan.identity is not None])
    return found[0].provider_type if found else None
