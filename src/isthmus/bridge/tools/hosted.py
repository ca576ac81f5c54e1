"""Declarations of tools that the provider runs itself: web search, retrieval, MCP.

In: the client's tool and the provider's template. Out: the declaration to send, and the client's options
that found no place in it. A template (`tools.declarations.<provider type>` in the provider file) is the
declaration as the provider wants it, with gaps (see `template`), merged over `{"type": <provider type>}`.

Options: of a web search `search_context_size` (`low`, `medium`, `high`), `content_size` (`high`, else
`medium`), `max_uses`, `allowed_domain` (the first), `allowed_domains`, `blocked_domains`, `user_location` and its parts
`country`, `region`, `city`, `timezone`; of a file search `vector_store_id` (the first), `vector_store_ids`,
`max_num_results`; of MCP `server_label`, `server_url`, `connector_id`, `server_description`, `headers`,
`authorization`, `allowed_tools`, `require_approval`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.bridge.tools.template import fill_template
from isthmus.protocol.json import JsonObject, deep_merge

_MCP_OPTIONS: Final = (
    *("server_label", "server_url", "connector_id", "server_description"),
    *("headers", "authorization", "allowed_tools", "require_approval"),
)

DEFAULT_TEMPLATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "retrieval": {"retrieval": {"knowledge_id": "{vector_store_id}"}},
    "mcp": {"mcp": {name: f"{{{name}}}" for name in _MCP_OPTIONS}},
}
"""What is sent where the provider file says nothing about the type."""

_CARRIED: Final[Mapping[str, str]] = {
    **{
        name: name for name in ("search_context_size", "max_uses", "vector_store_ids", "max_num_results", *_MCP_OPTIONS)
    },
    **dict.fromkeys(("user_location", "country", "region", "city", "timezone"), "user_location"),
    "content_size": "search_context_size",
    "allowed_domain": "filters.allowed_domains",
    "allowed_domains": "filters.allowed_domains",
    "blocked_domains": "filters.blocked_domains",
    "vector_store_id": "vector_store_ids",
}

_NO_OPTION: Final = frozenset({"type", "description", "name", "defer_loading"})


def fill_declaration(
    provider_type: str, tool: JsonObject, template: Mapping[str, Any] | None
) -> tuple[JsonObject, tuple[str, ...]]:
    """The declaration of a hosted tool, as the provider's data wants it; and the options that it has no place for."""
    used: set[str] = set()
    whole = deep_merge(DEFAULT_TEMPLATES.get(provider_type, {}), template or {})
    filled = fill_template(whole, lambda name: _read_option(name, tool, used))
    return {"type": provider_type, **filled}, _left_out(tool, used)


def _read_option(name: str, tool: JsonObject, used: set[str]) -> Any:
    used.add(name)
    value: Any = tool
    for step in _CARRIED.get(name, "").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    match name:
        case "content_size":
            return None if value is None else "high" if value == "high" else "medium"
        case "allowed_domain" | "vector_store_id":
            return value[0] if isinstance(value, list) and value else None
        case "allowed_domains" | "blocked_domains" | "vector_store_ids":
            return value or None
        case "user_location":
            return value if isinstance(value, dict) and value else None
        case "country" | "region" | "city" | "timezone":
            return value.get(name) if isinstance(value, dict) else None
    return value


def _left_out(tool: JsonObject, used: set[str]) -> tuple[str, ...]:
    """The paths of options that were given and are not carried; more than one store or domain is a loss, too."""
    carried = {_CARRIED.get(name) for name in used}
    given: JsonObject = {}
    for key, value in tool.items():
        if key == "filters" and isinstance(value, dict):
            given |= {f"filters.{name}": item for name, item in value.items() if item}
        # Reaching the open web is what a search does anyway; only a ban on it would be lost.
        elif key not in _NO_OPTION and value is not None and (key, value) != ("external_web_access", True):
            given[key] = value
    first = {"filters.allowed_domains": "allowed_domains", "vector_store_ids": "vector_store_ids"}
    cut = {path for path, plural in first.items() if plural not in used}
    return tuple(path for path, value in given.items() if path not in carried or (path in cut and len(value) > 1))
