"""A request's tools, once per request: what is declared and survives for this model, then what is sent.

In: the tools wherever they are declared, the client's choice, the model's capabilities. Out: a `ToolSurvey`.
Everything else that depends on tools (may the model think, may a format travel, is a call forced) asks here and
reads neither `tools` nor `tool_choice` itself: a tool that this model is never told of changes nothing.
Once it is known whether the model will think, the choice narrows them: a `ToolPlan`, for builder and assembler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import contains, itemgetter, methodcaller
from typing import Final

import msgspec

from isthmus.bridge.capabilities import ProviderCapabilities, ToolChoiceSupport, ToolSupport
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.tools.catalog import CARRIERS, build_tool_catalog, create_provider_name_allocator
from isthmus.bridge.tools.choice import ToolChoice, match_entry, plan_provider_tool_choice, read_tool_choice
from isthmus.bridge.tools.declare import TOOL_CODE, decline_search, is_sent, plan_tool_declaration, refuse_lonely
from isthmus.bridge.tools.managed import Loaded, is_called, part_found, plan_managed
from isthmus.bridge.tools.search import offer_search, runs_here
from isthmus.bridge.toolset import NO_TOOLS, Toolset
from isthmus.bridge.types.managed import NOTHING_MANAGED, Listing, Managed, ManagedKind
from isthmus.bridge.types.tools import CatalogTool, ToolDeclarationPlan, ToolIdentityMap, ToolPlan
from isthmus.errors import BRIDGE_REQUEST_UNSUPPORTED_PARAMETER, RequestRefused
from isthmus.protocol.json import JsonObject

_type_of: Final = methodcaller("get", "type")
_type_in: Final = itemgetter("type")
_name_in: Final = itemgetter("name")


class ToolSurvey(msgspec.Struct, frozen=True):
    declared: tuple[ToolDeclarationPlan, ...]
    """Every tool of the request with its fate, in the order of declaration."""
    offered: tuple[ToolDeclarationPlan, ...]
    deferred: tuple[ToolDeclarationPlan, ...]
    """Those that it is told of once a search has found them."""
    identities: ToolIdentityMap
    choice: ToolChoice
    forced: str | None
    """`required`, or the provider's type of the one tool that must be called; `None`: the model is free."""
    support: ToolChoiceSupport
    most: int | None
    given: bool
    """Whether the request has a list of tools at all, be it an empty one."""
    listings: Mapping[str, Listing] = {}
    """By label: MCP servers whose tools run here."""

    managed: frozenset[ManagedKind] = frozenset()
    """What of the request runs here."""
    patient: frozenset[tuple[str | None, str]] = frozenset()
    """Namespace and name of the tools whose outputs may come turns later."""
    plans: dict[bool, ToolPlan] = msgspec.field(default_factory=dict)
    """What `plan_tools` has made of it, by whether the model thinks."""

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
    managed: Managed = NOTHING_MANAGED,
    spent: bool = False,
) -> ToolSurvey:
    """Look at all tools of one request; the first `stored` items come from earlier turns. Without `search` nothing is
    deferred, whatever the tools say: the model has searched often enough. `managed` is what the host runs itself; once
    its budget is `spent`, the model is not offered it any more."""
    if capabilities.dialect == "codex":
        managed = NOTHING_MANAGED  # a thread of Codex waits for calls by its own ids, and has tools of its own

    def make() -> ToolSurvey:
        return _survey(tools, items, tool_choice, capabilities, stored, search, managed, spent)

    known = tools if isinstance(tools, Toolset) else None if tools else NO_TOOLS
    if known is None or managed is not NOTHING_MANAGED or isinstance(tool_choice, dict):
        return make()
    if _are_brought(items):
        return make()
    sees, alone = "image" in capabilities.messages.input, capabilities.dialect == "codex"
    name = (tools is None, tool_choice, search, spent, sees, alone)
    return known.once(name, make, capabilities.tools, capabilities.tool_choice)


def _are_brought(items: Sequence[JsonObject]) -> bool:
    """Whether the conversation has tools of its own."""
    return not CARRIERS.isdisjoint(map(_type_of, items))


def _survey(
    tools: Sequence[JsonObject] | None,
    items: Sequence[JsonObject],
    tool_choice: str | JsonObject | None,
    capabilities: ProviderCapabilities,
    stored: int,
    search: bool,
    managed: Managed,
    spent: bool,
) -> ToolSurvey:
    choice = read_tool_choice(tool_choice)
    # Too many are refused before anything is made of them, where it is certain how many are sent: where the choice
    # takes none of them out, nothing is loaded later, and no server's tools come in. Else `plan_tools` counts.
    narrows = choice.entries is not None or choice.mode == "none" or bool(choice.problem)
    most = None if narrows else capabilities.tools.max
    if tools is not None and most is not None and len(tools) > most and not _are_brought(items):
        _refuse_functions(tools, capabilities.tools, most)
    catalog: Sequence[CatalogTool] = build_tool_catalog(tools, items, stored=stored)
    if not catalog:
        return _survey_of_none(choice, capabilities, given=tools is not None)
    allocate = create_provider_name_allocator()
    support, sees = capabilities.tools, "image" in capabilities.messages.input
    searched = any(runs_here(tool.type, tool.tool) for tool in catalog)
    if most is not None and len(catalog) > most and not searched and managed is NOTHING_MANAGED:
        _refuse_above(most, sum([is_sent(tool, support, sees=sees) for tool in catalog]))
    declared: list[ToolDeclarationPlan] = []
    servers = frozenset(tool.name for tool in catalog if is_called(tool, support, managed)) if managed.mcp else None
    found: Loaded = frozenset()
    if servers:
        catalog, found = part_found(catalog, servers)
    for tool in catalog:
        here = plan_managed(tool, support, managed, allocate, found, items) if managed is not NOTHING_MANAGED else ()
        declared += here or [plan_tool_declaration(tool, support, allocate, searched=searched, sees=sees)]
    declared = refuse_lonely(declared)
    searches = [index for index, plan in enumerate(declared) if runs_here(plan.source.type, plan.source.tool)]
    deferred: tuple[ToolDeclarationPlan, ...] = ()
    if searches and (hosted := declared[searches[0]]).identity is not None:
        # A thread of Codex is told its tools once, when it starts: there is no later.
        if search and capabilities.dialect != "codex":
            deferred = _defer(declared, choice)
        declared[searches[0]] = offer_search(hosted, deferred) if deferred else decline_search(hosted)
    usable = tuple(plan for plan in declared if plan.identity is not None)
    late = frozenset(plan.source.path for plan in deferred)
    if spent:
        late |= {plan.source.path for plan in usable if plan.identity is not None and plan.identity.managed is not None}
    offered = tuple(plan for plan in usable if plan.source.path not in late) if late else usable
    identities = tuple(plan.identity for plan in usable if plan.identity is not None)
    return ToolSurvey(
        declared=tuple(declared),
        offered=offered,
        deferred=deferred,
        identities=ToolIdentityMap(identities),
        choice=choice,
        forced=_forced(choice, offered),
        most=capabilities.tools.max,
        support=capabilities.tool_choice,
        given=tools is not None,
        listings={label: managed.mcp[label] for label in managed.mcp if label in (servers or ())},
        managed=frozenset(identity.managed for identity in identities if identity.managed is not None),
        patient=frozenset((tool.namespace, tool.name) for tool in catalog if tool.tool.get("async") is True),
    )


def _survey_of_none(choice: ToolChoice, capabilities: ProviderCapabilities, *, given: bool) -> ToolSurvey:
    """As most requests that are small have no tools at all."""
    return ToolSurvey(
        declared=(),
        offered=(),
        deferred=(),
        identities=ToolIdentityMap(()),
        choice=choice,
        forced=_forced(choice, ()),
        most=capabilities.tools.max,
        support=capabilities.tool_choice,
        given=given,
        listings={},
    )


def _refuse_functions(tools: Sequence[JsonObject], support: ToolSupport, most: int) -> None:
    """Functions, each once: each of them is sent, and none has to be looked into."""
    if "function" not in support.native or {*map(_type_in, tools)} != {"function"}:
        return
    if len({*map(_name_in, tools)}) == len(tools) and not any(map(contains, tools, repeat("defer_loading"))):
        _refuse_above(most, len(tools))


def _refuse_above(most: int, count: int) -> None:
    if count > most:
        raise RequestRefused(
            f"`tools` has {count} tools for a provider that takes {most}; send fewer, or narrow them with "
            "`tool_choice` of type `allowed_tools`",
            code=BRIDGE_REQUEST_UNSUPPORTED_PARAMETER,
            param="tools",
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


def plan_tools(survey: ToolSurvey, *, thinking: bool = False) -> ToolPlan:
    """Plan all tools of one request; a rejected choice is a decision, too many tools an error."""
    if (known := survey.plans.get(thinking)) is None:
        known = survey.plans[thinking] = _plan_tools(survey, thinking)
    return known


def _plan_tools(survey: ToolSurvey, thinking: bool) -> ToolPlan:
    choice = plan_provider_tool_choice(survey.choice, survey.offered, survey.support, thinking)
    keep, sent = choice.keep, survey.offered
    if keep is not None:
        sent = tuple(plan for plan in sent if plan.identity is not None and plan.identity.provider_name in keep)
    if survey.most is not None:
        _refuse_above(survey.most, len(sent))
    decisions = [plan.decision for plan in survey.declared]
    if survey.given or survey.declared:
        decisions.append(_summarise(survey, len(sent)))
    if choice.decision is not None:
        decisions.append(choice.decision)
    return ToolPlan(sent, survey.identities, choice, tuple(decisions), survey.deferred, survey.listings)


def _summarise(survey: ToolSurvey, sent: int) -> CompatibilityDecision:
    actions = [plan.decision.action for plan in survey.declared]
    counts = {
        "degraded": actions.count("degraded"),
        "ignored": actions.count("ignored"),
        "deferred until a search finds them": len(survey.deferred),
        "held back by `tool_choice`": len(survey.offered) - sent,
    }
    parts = [f"{sent} sent", *(f"{count} {what}" for what, count in counts.items() if count)]
    return CompatibilityDecision("tools", "supported", ", ".join(parts), code=TOOL_CODE)
