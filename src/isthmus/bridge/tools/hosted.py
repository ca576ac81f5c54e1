"""Declarations of tools that the provider runs itself: web search, retrieval, MCP.

In: the client's tool and the provider's template. Out: the declaration to send, and the client's options
that found no place in it. A template (`tools.declarations.<provider type>` in the provider file) is the
declaration as the provider wants it, merged over `{"type": <provider type>}`. In it

- a string `"{option}"` is replaced by the option's value, and its key is left out when there is none;
- a table with the single key `"{option}"` is a choice: `{ "{search_context_size}" = { high = 5, "*" = 3 } }`
  picks by the option's value, `"*"` for any other or none;
- everything else is sent as it stands.

Options: of a web search `search_context_size` (`low`, `medium`, `high`), `content_size` (`high`, else
`medium`), `allowed_domain` (the first), `allowed_domains`, `blocked_domains`, `user_location` and its parts
`country`, `region`, `city`, `timezone`; of a file search `vector_store_id` (the first), `vector_store_ids`,
`max_num_results`; of MCP `server_label`, `server_url`, `connector_id`, `server_description`, `headers`,
`authorization`, `allowed_tools`, `require_approval`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from isthmus.bridge.merge import deep_merge
from isthmus.protocol.json import JsonObject

_MCP_OPTIONS: Final = (
    "server_label",
    "server_url",
    "connector_id",
    "server_description",
    "headers",
    "authorization",
    "allowed_tools",
    "require_approval",
)

DEFAULT_TEMPLATES: Final[Mapping[str, Mapping[str, Any]]] = {
    "retrieval": {"retrieval": {"knowledge_id": "{vector_store_id}"}},
    "mcp": {"mcp": {name: f"{{{name}}}" for name in _MCP_OPTIONS}},
}
"""What is sent where the provider file says nothing about the type."""

_SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "search_context_size": ("search_context_size", "content_size"),
    "filters.allowed_domains": ("allowed_domains", "allowed_domain"),
    "filters.blocked_domains": ("blocked_domains",),
    "user_location": ("user_location", "country", "region", "city", "timezone"),
    "vector_store_ids": ("vector_store_ids", "vector_store_id"),
    "max_num_results": ("max_num_results",),
    **{name: (name,) for name in _MCP_OPTIONS},
}
"""Which placeholders carry which option of the client's tool."""

_NO_OPTION: Final = frozenset({"type", "description", "name", "defer_loading"})
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class HostedDeclaration:
    declaration: JsonObject
    left_out: tuple[str, ...] = ()
    """Options of the client's tool that the declaration has no place for."""


def fill_declaration(provider_type: str, tool: JsonObject, template: Mapping[str, Any] | None) -> HostedDeclaration:
    """The declaration of a hosted tool, as the provider's data wants it."""
    options = _read_options(tool)
    used: set[str] = set()
    filled = _fill(deep_merge(DEFAULT_TEMPLATES.get(provider_type, {}), template or {}), options, used)
    declaration = {"type": provider_type, **filled}
    return HostedDeclaration(declaration, tuple(_left_out(tool, used)))


def _read_options(tool: JsonObject) -> JsonObject:
    filters = _object(tool.get("filters"))
    place = _object(tool.get("user_location"))
    size = tool.get("search_context_size")
    domains, stores = filters.get("allowed_domains"), tool.get("vector_store_ids")
    options: JsonObject = {
        "search_context_size": size,
        "content_size": None if size is None else "high" if size == "high" else "medium",
        "allowed_domains": domains or None,
        "allowed_domain": domains[0] if isinstance(domains, list) and domains else None,
        "blocked_domains": filters.get("blocked_domains") or None,
        "user_location": place or None,
        **{part: place.get(part) for part in ("country", "region", "city", "timezone")},
        "vector_store_ids": stores or None,
        "vector_store_id": stores[0] if isinstance(stores, list) and stores else None,
        "max_num_results": tool.get("max_num_results"),
        **{name: tool.get(name) for name in _MCP_OPTIONS},
    }
    return {name: value for name, value in options.items() if value is not None}


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _fill(template: Mapping[str, Any], options: JsonObject, used: set[str]) -> JsonObject:
    filled: JsonObject = {}
    for key, value in template.items():
        found = _fill_value(value, options, used)
        if found is not _ABSENT:
            filled[key] = found
    return filled


def _fill_value(value: Any, options: JsonObject, used: set[str]) -> Any:
    if isinstance(value, str):
        name = _placeholder(value)
        if name is None:
            return value
        used.add(name)
        return options.get(name, _ABSENT)
    if isinstance(value, Mapping):
        chosen = _placeholder(next(iter(value))) if len(value) == 1 else None
        if chosen is None:
            return _fill(value, options, used)
        used.add(chosen)
        cases: Mapping[str, Any] = value[f"{{{chosen}}}"]
        return cases.get(str(options.get(chosen, "*")), cases.get("*", _ABSENT))
    return value


def _placeholder(text: str) -> str | None:
    return text[1:-1] if len(text) > 2 and text[0] == "{" and text[-1] == "}" and text[1:-1].isidentifier() else None


def _left_out(tool: JsonObject, used: set[str]) -> list[str]:
    """The paths of options that were given and are not carried; more than one store or domain is a loss, too."""
    left: list[str] = []
    for path, value in _given(tool):
        carriers = _SOURCES.get(path, ())
        if not used.intersection(carriers) or (_only_first(carriers, used) and len(value) > 1):
            left.append(path)
    return left


def _given(tool: JsonObject) -> list[tuple[str, Any]]:
    given: list[tuple[str, Any]] = []
    for key, value in tool.items():
        if key == "filters" and isinstance(value, dict):
            given += [(f"filters.{name}", item) for name, item in value.items() if item]
        # Reaching the open web is what a search does anyway; only a ban on it would be lost.
        elif key not in _NO_OPTION and value is not None and (key, value) != ("external_web_access", True):
            given.append((key, value))
    return given


def _only_first(carriers: tuple[str, ...], used: set[str]) -> bool:
    plural = carriers[0] if carriers else ""
    return plural in ("allowed_domains", "vector_store_ids") and plural not in used
