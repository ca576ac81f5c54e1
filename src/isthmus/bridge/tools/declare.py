"""What becomes of one tool, and how those that survive look in a Chat-Completions body.

In: a catalog tool, the provider's `ToolSupport` and a name allocator. Out: a `ToolDeclarationPlan` with its
decision: *supported* when the type is native, *degraded* when the provider file maps it to another type,
*ignored* otherwise. `render_provider_tool_declarations` then only writes down what was planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isthmus.bridge.capabilities import ToolSupport
from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.bridge.projection import ROOT_WRAPPED, project_parameters
from isthmus.bridge.tools.builtin import describe_as_function
from isthmus.bridge.tools.catalog import NAMED_TYPES, NameAllocator, flat_name
from isthmus.bridge.tools.computer import COMPUTERS
from isthmus.bridge.tools.credentials import is_stripped
from isthmus.bridge.tools.hosted import fill_declaration
from isthmus.bridge.types.tools import CatalogTool, ToolDeclarationPlan, ToolIdentity
from isthmus.protocol.json import JsonObject

TOOL_CODE: Final = "bridge.tool.compatibility"
SCHEMA_CODE: Final = "bridge.tool.schema_projected"


def plan_tool_declaration(
    tool: CatalogTool, support: ToolSupport, allocate: NameAllocator, *, searched: bool = False, sees: bool = False
) -> ToolDeclarationPlan:
    """Decide one tool's fate; only a tool that is sent takes a name. `searched`: the client left a search to us.
    `sees`: the model takes images."""
    provider_type = _sent_as(tool, support, sees)
    if refusal := _refusal(tool, support):
        return leave_out(tool, "rejected", refusal)
    if obstacle := _obstacle(tool, support, provider_type):
        return leave_out(tool, "ignored", obstacle)
    # Calls of a tool that was deferred by itself come in a namespace of its own name: the agents SDKs look for them
    # nowhere else (openai-agents 0.24.0, 2026-11-16).
    alone = searched and tool.namespace is None and tool.type in NAMED_TYPES and tool.tool.get("defer_loading") is True
    identity = ToolIdentity(
        requested_name=tool.name,
        requested_type=tool.type,
        provider_name=allocate(flat_name(tool.name, tool.namespace)),
        provider_type=provider_type,
        namespace=tool.name if alone else tool.namespace,
        tool=tool.tool,
    )
    return (_plan_function if provider_type == "function" else _plan_hosted)(tool, support, identity)


def is_sent(tool: CatalogTool, support: ToolSupport, *, sees: bool = False) -> bool:
    """Whether one survives, without making anything of it."""
    return not _refusal(tool, support) and not _obstacle(tool, support, _sent_as(tool, support, sees))


def decline_search(search: ToolDeclarationPlan) -> ToolDeclarationPlan:
    return leave_out(search.source, "ignored", "nothing is deferred; every tool of the request is declared at once")


def leave_out(tool: CatalogTool, action: Action, reason: str) -> ToolDeclarationPlan:
    facts = facts_of(tool, None)
    return ToolDeclarationPlan(tool, CompatibilityDecision(tool.path, action, reason, code=TOOL_CODE, metadata=facts))


def render_provider_tool_declarations(declarations: Sequence[ToolDeclarationPlan]) -> list[JsonObject]:
    return [_render(plan) for plan in declarations if plan.identity is not None]


def _sent_as(tool: CatalogTool, support: ToolSupport, sees: bool) -> str:
    """The provider's type for it; empty: there is none."""
    kind = tool.type if tool.type in support.native else support.degraded.get(tool.type, "")
    looks = tool.type in COMPUTERS and not kind and sees and "function" in support.native
    return "function" if looks else kind


def _refusal(tool: CatalogTool, support: ToolSupport) -> str:
    """Why a request with this tool is refused: nobody but its vendor could ever call that server."""
    if tool.type in support.native and support.as_is:
        return ""
    for name in ("connector_id", "tunnel_id") if tool.type == "mcp" else ():
        if tool.tool.get(name):
            return f"`{name}` names a server that only its vendor can reach; give its `server_url`"
    return ""


def refuse_lonely(declared: Sequence[ToolDeclarationPlan]) -> list[ToolDeclarationPlan]:
    """Tools that only OpenAI runs are left out, aloud, beside others; where nothing else is left, the request is
    refused: without them the model would work on nothing."""
    if any(plan.identity is not None for plan in declared):
        return list(declared)
    return [
        leave_out(plan.source, "rejected", plan.decision.reason) if is_elsewhere(plan.source) else plan
        for plan in declared
    ]


def is_elsewhere(tool: CatalogTool) -> bool:
    """Whether a tool runs in a place that only OpenAI has: its containers, its vector stores."""
    return tool.type in ("code_interpreter", "file_search") or (tool.type == "shell" and _container(tool) is not None)


def _container(tool: CatalogTool) -> str | None:
    place = tool.tool.get("environment")
    kind = place.get("type") if isinstance(place, dict) else None
    return None if kind in (None, "local") else str(kind)


def _obstacle(tool: CatalogTool, support: ToolSupport, to: str) -> str:
    if tool.type == "shell" and (kind := _container(tool)) is not None and not (to == tool.type and support.as_is):
        return f"there are no containers here (`environment.type` is `{kind}`); run the commands with `local`"
    if tool.type == "namespace":
        return f"the namespace `{tool.name}` holds no tools"
    if not to:
        if tool.type == "programmatic_tool_calling":
            return "nothing here runs the model's programs; the tools are offered to be called directly"
        if tool.type == "file_search":
            return "there are no vector stores here; send the texts as `input_file`, or search with a function"
        if tool.type == "code_interpreter":
            return "there is no sandbox here to run the model's code in; give it a function that runs it"
        if tool.type in COMPUTERS:
            return "the model takes no images, so it could not see the screen; choose one that does"
        return f"the provider has no `{tool.type}` tool and nothing stands in for it"
    if tool.type == "mcp" and is_stripped(tool.tool):
        return f"the credentials of `{tool.name}` are not kept from one request to the next; declare it again"
    if tool.tool.get("external_web_access") is False and to != "function" and not support.cached_search:
        return "`external_web_access` is false, and the provider's own search always goes to the live web"
    if to == "retrieval" and not tool.tool.get("vector_store_ids"):
        return f"`{tool.path}.vector_store_ids` names no store to search"
    return ""


def _plan_function(tool: CatalogTool, support: ToolSupport, identity: ToolIdentity) -> ToolDeclarationPlan:
    description, wanted = describe_as_function(tool)
    parameters, dropped = project_parameters(wanted, support.drop_keywords, support.inline_refs, support.plain_root)
    # A synthesised schema is ours: what the projection takes out of it is no loss to the client.
    lost = dropped if wanted is not None and wanted is tool.tool.get("parameters") else ()
    strict = tool.tool.get("strict") if tool.type == "function" else None
    reasons = _function_reasons(tool, lost, bool(strict) and not support.strict)
    code = SCHEMA_CODE if lost and tool.type == "function" else TOOL_CODE
    decision = _decide(tool, identity, reasons, code, dropped_keywords=lost)
    return ToolDeclarationPlan(tool, decision, identity, description, parameters, strict if support.strict else None)


def _function_reasons(tool: CatalogTool, lost: tuple[str, ...], strict_lost: bool) -> list[str]:
    reasons: list[str] = []
    if tool.type != "function":
        reasons.append(f"the provider has no `{tool.type}` tool; the model sees a function, the client its own type")
    if ROOT_WRAPPED in lost:
        reasons.append("`parameters` is not an object schema; it is sent as the property `value` of one")
    keywords = [f"`{keyword}`" for keyword in lost if keyword != ROOT_WRAPPED]
    if keywords:
        reasons.append(f"the provider refuses {', '.join(keywords)} in schemas; moved into descriptions")
    callers = tool.tool.get("allowed_callers")
    if isinstance(callers, list) and callers and "direct" not in callers:
        reasons.append("only programs may call it, and none run here; it is offered to be called directly")
    if tool.tool.get("async") is True:
        reasons.append("the provider wants an output at once; one that comes later is told in a message")
    if strict_lost:
        reasons.append("the provider does not enforce `strict` schemas; the schema is only a guide")
    return reasons


def _plan_hosted(tool: CatalogTool, support: ToolSupport, identity: ToolIdentity) -> ToolDeclarationPlan:
    kind = identity.provider_type
    if support.as_is and kind == tool.type:
        named = {"name": identity.provider_name} if "name" in tool.tool else {}
        return ToolDeclarationPlan(tool, _decide(tool, identity, []), identity, fields={**tool.tool, **named})
    declaration, left_out = fill_declaration(kind, tool.tool, support.declarations.get(kind))
    reasons = [f"`{tool.type}` is sent as the provider's `{kind}`"] if kind != tool.type else []
    if left_out:
        reasons.append(f"the provider cannot take all of {', '.join(f'`{name}`' for name in left_out)}")
    return ToolDeclarationPlan(tool, _decide(tool, identity, reasons, left_out=left_out), identity, fields=declaration)


def _decide(
    tool: CatalogTool, identity: ToolIdentity, reasons: list[str], code: str = TOOL_CODE, **losses: tuple[str, ...]
) -> CompatibilityDecision:
    """The decision on a tool that is sent: each reason tells of something that is not as the client asked."""
    return CompatibilityDecision(
        tool.path,
        "degraded" if reasons else "supported",
        "; ".join(reasons) or "native to the provider",
        effective_value=identity.provider_type if identity.provider_type != tool.type else None,
        code=code,
        metadata=facts_of(tool, identity) | {name: list(lost) for name, lost in losses.items() if lost},
    )


def facts_of(tool: CatalogTool, sent: ToolIdentity | None) -> JsonObject:
    inside = {} if tool.namespace is None else {"namespace": tool.namespace}
    to = {} if sent is None else {"provider_name": sent.provider_name, "provider_type": sent.provider_type}
    return {"tool": tool.name, "type": tool.type, **inside, **to}


def _render(plan: ToolDeclarationPlan) -> JsonObject:
    if plan.identity is None or plan.identity.provider_type != "function":
        return dict(plan.fields)
    described = {"description": plan.description} if plan.description else {}
    strict = {} if plan.strict is None else {"strict": plan.strict}
    function = {"name": plan.identity.provider_name, **described, "parameters": plan.parameters, **strict}
    return {"type": "function", "function": function}
