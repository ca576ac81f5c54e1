"""Tools that the host runs itself, as the model is told of them and as the client sees their calls.

In: a hosted tool of the request (`web_search` under any of its names, `mcp`, `image_generation`) and what the host
runs. Out: the functions that stand for it, one for each tool of an MCP server; later, the item of a call. The
provider's own tool wins unless the host prefers its own. What a call asked for is read back from its item alone (see
`asked_by`), so that a later request tells the model of it in the very same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final, cast

import msgspec

from isthmus.bridge.capabilities import ToolSupport
from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.projection import project_parameters
from isthmus.bridge.tools.catalog import NameAllocator, flat_name
from isthmus.bridge.tools.declare import TOOL_CODE, facts_of, leave_out
from isthmus.bridge.tools.pictures import image_made, latest_images
from isthmus.bridge.tools.shapes import closed, field
from isthmus.bridge.types.managed import PICTURES, Listing, Managed, ManagedKind, Output
from isthmus.bridge.types.tools import CatalogTool, ToolDeclarationPlan, ToolIdentity
from isthmus.protocol.items import HostedItem
from isthmus.protocol.json import JsonObject, read_json, write_json

MAX_QUERIES: Final = 8
"""Wordings of one search that are looked for; a model that names more is answered for these."""
SOURCES: Final = "web_search_call.action.sources"
"""What a client includes to be told of the pages that a search found."""
ITEM_TYPES: Final[Mapping[ManagedKind, str]] = {
    "web_search": "web_search_call",
    "mcp": "mcp_call",
    "image_generation": "image_generation_call",
}
_MAX_URLS: Final = 20
"""Pages of a past search that are named where nothing else is left of it."""
_SEARCH: Final = (
    "Search the web and get the best results with their addresses. Where an answer rests on a page, link to it in "
    "Markdown: [title](address)."
)
_QUERIES: Final = {
    "query": field("string", "What to search for."),
    "queries": field("array", "Further wordings to search for.", items={"type": "string"}),
}
_UNHEARD: Final = ["search_content_types", "image_settings", "return_token_budget"]
"""Of a search: what no engine here can be asked for."""
_PAGE: Final = {
    "url": field("string", "Open this page and read it, in place of searching."),
    "pattern": field("string", "With `url`: only the places where this text stands."),
}
_IMAGE: Final = "Make an image, which the user is shown."
_PROMPT: Final = {"prompt": field("string", "What the image shows, in all detail that matters.")}
_CHANGE: Final = {
    "change": field("boolean", "Whether the latest image of the conversation is changed, in place of making a new one.")
}


def managed_kind(tool_type: str) -> ManagedKind | None:
    """What a tool of the request is to whoever runs it: the dated and preview names of the search are one."""
    if tool_type.startswith("web_search"):
        return "web_search"
    return "mcp" if tool_type == "mcp" else "image_generation" if tool_type == "image_generation" else None


def managed_word(tool: Mapping[str, Any]) -> str | None:
    """By which word a tool that may run here is allowed or not: its kind, and the server's label of an `mcp`."""
    kind = managed_kind(str(tool.get("type", "")))
    return f"mcp:{tool.get('server_label', '')}" if kind == "mcp" else kind


Loaded = Set[tuple[str | None, str]]
"""Label and name of tools that a search has found."""


def plan_managed(
    tool: CatalogTool,
    support: ToolSupport,
    managed: Managed,
    allocate: NameAllocator,
    loaded: Loaded = frozenset(),
    items: Sequence[Mapping[str, Any]] = (),
) -> list[ToolDeclarationPlan]:
    """The functions by which the model calls a tool that runs here; none: it is the provider's own, or nobody's.
    `items` are the conversation so far."""
    if managed.denied and (reason := managed.denied.get(managed_word(tool.tool) or "")):
        return [leave_out(tool, "ignored", reason)]
    kind = _runs(tool, support, managed)
    match kind:
        case None:
            return []
        case "web_search":
            if tool.tool.get("external_web_access") is False and not managed.offline:
                reason = f"`external_web_access` is false, and the search here ({managed.search}) goes to the live web"
                return [leave_out(tool, "ignored", reason)]
            words, schema = _SEARCH, {**closed(_QUERIES)}
            if managed.pages:
                schema = {**schema, "properties": {**_QUERIES, **_PAGE}, "required": []}
            planned = _plan(tool, kind, kind, None, words, schema, managed.search, support, allocate)
            return [_without(planned, [name for name in _UNHEARD + sorted(managed.unheard) if tool.tool.get(name)])]
        case "image_generation":
            return [_plan_images(tool, managed, support, allocate, items)]
    return _plan_server(tool, managed.mcp[tool.name], support, allocate, loaded)


def _without(planned: ToolDeclarationPlan, lost: list[str]) -> ToolDeclarationPlan:
    """The same, where the host cannot do all that the client's declaration asks for."""
    if not lost:
        return planned
    named = " and ".join(f"`{name}`" for name in lost)
    reason = f"{planned.decision.reason}, and {named} cannot be taken into account"
    decision = msgspec.structs.replace(planned.decision, action="degraded", reason=reason)
    return msgspec.structs.replace(planned, decision=decision)


def _plan_images(
    tool: CatalogTool,
    managed: Managed,
    support: ToolSupport,
    allocate: NameAllocator,
    items: Sequence[Mapping[str, Any]],
) -> ToolDeclarationPlan:
    """Whoever makes images is handed those of the conversation with a call: it may be asked to change one."""
    pictures = latest_images(items, managed.edits)
    free = pictures and tool.tool.get("action") not in ("generate", "edit")
    schema = closed({**_PROMPT, **(_CHANGE if free else {})})
    given = msgspec.structs.replace(tool, tool={**tool.tool, PICTURES: pictures})
    plan = _plan(given, "image_generation", tool.type, None, _IMAGE, schema, managed.images, support, allocate)
    lost = [name for name in managed.lost if name in tool.tool]
    if not lost:
        return plan
    told = ", ".join(f"`{name}`" for name in lost)
    reason = f"{plan.decision.reason}; {managed.images} does not take {told} as asked for"
    metadata = {**plan.decision.metadata, "left_out": lost}
    decision = msgspec.structs.replace(plan.decision, action="degraded", reason=reason, metadata=metadata)
    return msgspec.structs.replace(plan, decision=decision)


def is_called(tool: CatalogTool, support: ToolSupport, managed: Managed) -> bool:
    """Whether this is an MCP server whose tools are called from here."""
    return tool.type == "mcp" and _runs(tool, support, managed) is not None


def _runs(tool: CatalogTool, support: ToolSupport, managed: Managed) -> ManagedKind | None:
    kind = managed_kind(tool.type)
    if kind is None or "function" not in support.native or (managed_word(tool.tool) or "") in managed.denied:
        return None
    who = {"web_search": managed.search, "image_generation": managed.images, "mcp": tool.name in managed.mcp}
    if not who[kind]:
        return None
    own = _own_type(tool.type, support)
    # A provider whose own search cannot be kept off the live web has none for this request.
    unfit = tool.tool.get("external_web_access") is False and not support.cached_search
    ours = kind in managed.prefers or (kind == "mcp" and managed.mcp[tool.name].own)
    return kind if own == "function" or ours or unfit else None


def part_found(catalog: Sequence[CatalogTool], servers: Set[str]) -> tuple[list[CatalogTool], Loaded]:
    """The request's own tools, and apart from them those of these servers that a search has found: it tells of them as
    functions, which are nobody's but the server's."""
    found = [one for one in catalog if one.namespace in servers and not one.path.startswith("tools[")]
    paths = {one.path for one in found}
    return [one for one in catalog if one.path not in paths], {(one.namespace, one.name) for one in found}


def own_kinds(support: ToolSupport) -> frozenset[str]:
    """What a provider runs itself."""
    return frozenset(kind for kind in ITEM_TYPES if _own_type(kind, support) != "function")


def _own_type(tool_type: str, support: ToolSupport) -> str:
    """What the provider calls it; `function`: it has nothing of that kind."""
    return tool_type if tool_type in support.native else support.degraded.get(tool_type, "function")


def _plan_server(
    tool: CatalogTool, listing: Listing, support: ToolSupport, allocate: NameAllocator, loaded: Loaded
) -> list[ToolDeclarationPlan]:
    label, about = tool.name, tool.tool.get("server_description")
    if listing.error is not None:
        why = listing.error.get("message") or listing.error.get("type") or "it gave no reason"
        return [leave_out(tool, "ignored", f"the tools of the MCP server `{label}` could not be listed: {why}")]
    if listing.later:
        return [leave_out(tool, "supported", f"runs here ({label}); its tools are listed when the request is made")]
    if not listing.tools:
        return [leave_out(tool, "ignored", f"the MCP server `{label}` offers no tool that may be called")]
    planned: list[ToolDeclarationPlan] = []
    for index, one in enumerate(listing.tools):
        name, schema, own = str(one["name"]), one.get("input_schema"), str(one.get("description") or "")
        # As a search tells of it: without what the client's declaration of the server holds for the server alone.
        shown = {"type": "function", "name": name, "description": own, "parameters": schema}
        # The server's own words travel once, with its first tool.
        about_it = str(about) if about and not index else ""
        late = tool.deferred and (label, name) not in loaded
        part = CatalogTool(f"{tool.path}.tools[{index}]", tool.type, name, label, shown, about_it, late)
        words = "\n\n".join([*([f"Part of `{label}`: {about_it}"] if about_it else []), own]).strip()
        plan = _plan(part, "mcp", name, label, words, schema, label, support, allocate, tool.tool, name in listing.asks)
        planned.append(plan)
    return planned


def _plan(
    tool: CatalogTool,
    kind: ManagedKind,
    name: str,
    label: str | None,
    words: str,
    schema: Any,
    who: str,
    support: ToolSupport,
    allocate: NameAllocator,
    declared: JsonObject | None = None,
    asks: bool = False,
) -> ToolDeclarationPlan:
    """`declared`: what the client said of the server that a tool belongs to."""
    parameters, _ = project_parameters(schema, support.drop_keywords, support.inline_refs, support.plain_root)
    identity = ToolIdentity(
        requested_name=name,
        requested_type=tool.type,
        provider_name=allocate(flat_name(name, label)),
        provider_type="function",
        namespace=label,
        tool=tool.tool if declared is None else declared,
        managed=kind,
        asks=asks,
    )
    reason = f"runs here ({who}); the model sees a function" + (", the user approves each call" if asks else "")
    decision = CompatibilityDecision(
        tool.path, "supported", reason, code=TOOL_CODE, metadata={**facts_of(tool, identity), "runs": "here"}
    )
    own = str(tool.tool.get("description") or "") if kind != "mcp" else ""
    return ToolDeclarationPlan(tool, decision, identity, own or words, parameters)


def shape_managed(identity: ToolIdentity, arguments: str) -> HostedItem:
    """The item of a call whose arguments are whole, before anything came of it; its id is open."""
    given = read_arguments(identity.managed, arguments) or {}
    match identity.managed:
        case "mcp" if identity.asks:
            item: Any = {"type": "mcp_approval_request", **_called(identity, arguments)}
        case "mcp":
            item = {"type": "mcp_call", **_called(identity, arguments), "output": None, "error": None}
            item["approval_request_id"] = None
        case "image_generation":
            item = {"type": "image_generation_call", "result": None, "revised_prompt": given["prompt"]}
        case _:
            item = {"type": "web_search_call", "action": _action(given)}
    return cast(HostedItem, {**item, "id": "", "status": "in_progress"})


def read_arguments(kind: ManagedKind | None, arguments: str) -> JsonObject | None:
    """What a call asks for, as the host reads it (`ManagedCall.arguments`). Whatever a model says can be looked for, or
    painted; a server is asked only for what it can read: `None`."""
    value = read_json(arguments)
    value = read_json(value) if isinstance(value, str) else value
    given, bare = (value, "") if isinstance(value, dict) else ({}, arguments.strip())
    if kind == "mcp":
        return None if bare else given
    if kind == "image_generation":
        return {**given, "prompt": _text(given.get("prompt")) or bare}
    if url := _text(given.get("url")):
        pattern = _text(given.get("pattern"))
        return {"url": url, "pattern": pattern} if pattern else {"url": url}
    more = given.get("queries")
    asked = [given.get("query"), *(more if isinstance(more, list) else [more]), bare]
    queries = list(dict.fromkeys(words for one in asked if (words := _text(one))))
    return _search_arguments(queries[:MAX_QUERIES])


def asked_by(item: Mapping[str, Any]) -> tuple[str, str | None, str]:
    """Name, label and argument text of the call that an item tells of: the same text in every request."""
    match item["type"]:
        case "mcp_call" | "mcp_approval_request":
            given = item.get("arguments")
            text = given if isinstance(given, str) and isinstance(read_json(given), dict) else "{}"
            return str(item.get("name") or ""), str(item.get("server_label") or ""), text
        case "image_generation_call":
            return "image_generation", None, write_json({"prompt": _text(item.get("revised_prompt"))})
    action = item.get("action")
    action = action if isinstance(action, dict) else {}
    if url := _text(action.get("url")):
        pattern = _text(action.get("pattern"))
        return "web_search", None, write_json({"url": url, "pattern": pattern} if pattern else {"url": url})
    more = action.get("queries")
    asked = [action.get("query"), *(more if isinstance(more, list) else [])]
    queries = list(dict.fromkeys(words for one in asked if (words := _text(one))))
    return "web_search", None, write_json(_search_arguments(queries[:MAX_QUERIES]))


def failed_fields(kind: str, words: str) -> JsonObject:
    """What the item of a call says that failed for a reason of ours."""
    if kind == "mcp":
        return {"error": {"type": "mcp_protocol_error", "code": -32_000, "message": words}}
    error = {"type": "image_generation_server_error", "code": "tool_failed", "message": words, "param": None}
    return {"error": error} if kind == "image_generation" else {}


def failure_words(error: Mapping[str, Any]) -> str:
    """What the model reads of an `error` of an MCP call: its message, or what the tool itself said."""
    why = error.get("message")
    if not isinstance(why, str):
        content = error.get("content")
        parts = content if isinstance(content, list) else []
        why = "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
    return f"[it failed: {why}]" if why else "[it failed]"


def recall(item: Mapping[str, Any]) -> Output | None:
    """What the model was told of a past call, as far as the item itself says it; `None`: it does not."""
    output, error = item.get("output"), item.get("error")
    if item["type"] == "mcp_call" and isinstance(error, dict):
        return failure_words(error)
    if item["type"] == "mcp_call" and isinstance(output, str) and not error:
        return output
    if item["type"] == "image_generation_call" and isinstance(result := item.get("result"), str) and result:
        return image_made(result)
    return None


def describe_result(item: Mapping[str, Any]) -> str:
    """The same in words, where nothing better is left of it."""
    told = recall(item)
    if isinstance(told, str):
        return told
    error, failed = item.get("error"), item.get("status") == "failed"
    if error or failed:
        why = error.get("message") or error.get("content") if isinstance(error, dict) else error
        why = why if isinstance(why, str) or not why else write_json(why)
        return f"[it failed: {why}]" if why else "[it failed]"
    action = item.get("action")
    sources = action.get("sources") if isinstance(action, dict) else None
    urls = [url for one in sources or () if isinstance(one, dict) and (url := _text(one.get("url")))]
    return "\n".join(["[what it found is in the answer that followed]", *urls[:_MAX_URLS]])


def _search_arguments(queries: list[str]) -> JsonObject:
    first, rest = (queries[0], queries[1:]) if queries else ("", [])
    return {"query": first, "queries": rest} if rest else {"query": first}


def _action(given: JsonObject) -> JsonObject:
    if "url" in given:
        return {"type": "find_in_page" if "pattern" in given else "open_page", **given}
    return {"type": "search", "query": given["query"], "queries": [given["query"], *given.get("queries", ())]}


def _called(identity: ToolIdentity, arguments: str) -> JsonObject:
    text = arguments if arguments.strip() else "{}"
    return {"server_label": identity.namespace, "name": identity.requested_name, "arguments": text}


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
