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
from isthmus.bridge.tools.declare import decline_search, plan_tool_declaration
from isthmus.bridge.tools.names import create_provider_name_allocator
from isthmus.bridge.tools.search import offer_search, runs_here
from isthmus.bridge.types.tools import ToolDeclarationPlan, ToolIdentityMap
from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class ToolSurvey:
    declared: tuple[ToolDeclarationPlan, ...]
    """Every tool of the request with its fate, in the order of declaration."""
    offered: tuple[ToolDeclarationPlan, ...]
    """Those that this model can be told of."""
    deferred: tuple[ToolDeclarationPlan, ...]
    """Those that it is told of once a search has found them."""
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
    search: bool = True,
) -> ToolSurvey:
    """Look at all tools of one request; the first `stored` items come from earlier turns.

    Without `search` nothing is deferred, whatever the tools say: the model has searched often enough.
    """
    allocate = create_provider_name_allocator()
    catalog = build_tool_catalog(tools, items, stored=stored)
    hosted = next((index for index, tool in enumerate(catalog) if runs_here(tool)), None)
    declared = [
        plan_tool_declaration(tool, capabilities.tools, allocate, searched=hosted is not None) for tool in catalog
    ]
    choice = read_tool_choice(tool_choice)
    deferred: tuple[ToolDeclarationPlan, ...] = ()
    if hosted is not None and declared[hosted].identity is not None:
        # A thread of Codex is told its tools once, when it starts: there is no later.
        if search and capabilities.dialect != "codex":
            deferred = _defer(declared, choice)
        if deferred:
            declared[hosted] = offer_search(declared[hosted], deferred)
        else:
            declared[hosted] = decline_search(declared[hosted])
    late = frozenset(plan.source.path for plan in deferred)
    usable = [plan for plan in declared if plan.identity is not None]
    offered = tuple(plan for plan in usable if plan.source.path not in late)
    return ToolSurvey(
        declared=tuple(declared),
        offered=offered,
        deferred=deferred,
        identities=ToolIdentityMap(tuple(plan.identity for plan in usable if plan.identity is not None)),
        choice=choice,
        forced=_forced(choice, offered),
        limit=capabilities.tools.max,
        support=capabilities.tool_choice,
        given=tools is not None,
    )


def _defer(declared: Sequence[ToolDeclarationPlan], choice: ToolChoice) -> tuple[ToolDeclarationPlan, ...]:
    """What waits for a search: not what the client's choice names, for that is wanted now."""
    late = [plan for plan in declared if plan.source.deferred and plan.identity is not None]
    identities = [plan.identity for plan in late if plan.identity is not None]
    named = [found.provider_name for entry in choice.entries or () for found in match_entry(entry, identities)]
    return tuple(plan for plan in late if plan.identity is not None and plan.identity.provider_name not in named)


def _forced(choice: ToolChoice, offered: Sequence[ToolDeclarationPlan]) -> str | None:
    if choice.mode == "required":
        return "required" if offered else None
    if choice.mode != "named" or not choice.entries:
        return None
    found = match_entry(choice.entries[0], [plan.identity for plan in offered if plan.identity is not None])
    return found[0].provider_type if found else None
