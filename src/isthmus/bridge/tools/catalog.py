"""Every tool the client offered, in one flat list, wherever it was declared.

In: the request's `tools` and its input items. Out: one `CatalogTool` each, namespaces opened, in the
order of declaration: `tools` first, then those of `additional_tools` and `tool_search_output` items as
they come. Tools are only ever appended as a conversation grows, so earlier ones keep their place and
their name upstream, and prompt caches stay warm. A tool declared again without a change counts once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from isthmus.bridge.types.history import item_path
from isthmus.bridge.types.tools import CatalogTool
from isthmus.protocol.json import JsonObject, without_nulls

NAMED_TYPES: Final = ("function", "custom")
"""Types that carry a name of their own; the others are known by their type."""

CARRIERS: Final = ("additional_tools", "tool_search_output")
"""Input items that declare tools."""


def build_tool_catalog(
    tools: Sequence[JsonObject] | None, items: Sequence[JsonObject] = (), *, stored: int = 0
) -> tuple[CatalogTool, ...]:
    """All tools of a request, each once; the first `stored` items come from earlier turns."""
    catalog: list[CatalogTool] = []
    seen: dict[tuple[str, str | None, str], list[int]] = {}
    unnamed: dict[str, int] = {}
    for entry in _open_all(tools, items, stored):
        known = seen.setdefault((entry.type, entry.namespace, entry.name), [])
        same = next((at for at in known if _is_same(catalog[at].tool, entry.tool)), None) if known else None
        if same is None:
            known.append(len(catalog))
            catalog.append(_number(entry, unnamed))
        elif catalog[same].deferred and not entry.deferred:
            catalog[same] = replace(catalog[same], deferred=False)  # a search has found it since
    return tuple(catalog)


def _is_same(one: JsonObject, other: JsonObject) -> bool:
    """Whether a tool is declared again: how it is loaded makes it no other one."""
    return one == other or {**one, "defer_loading": None} == {**other, "defer_loading": None}


def _open_all(tools: Sequence[JsonObject] | None, items: Sequence[JsonObject], stored: int) -> Iterator[CatalogTool]:
    yield from _open(tools or (), "tools", None, defers=True)
    for index, item in enumerate(items):
        if item.get("type") in CARRIERS:
            loads = item["type"] == "tool_search_output"
            yield from _open(item.get("tools") or (), f"{item_path(index, stored)}.tools", None, defers=not loads)


def _open(
    tools: Sequence[JsonObject], path: str, namespace: str | None, about_namespace: str = "", *, defers: bool
) -> Iterator[CatalogTool]:
    for index, tool in enumerate(tools):
        where = f"{path}[{index}]"
        kind = str(tool.get("type", ""))
        children = tool.get("tools") if kind == "namespace" else None
        if children:
            inner = str(tool["name"]) if namespace is None else f"{namespace}__{tool['name']}"
            yield from _open(children, f"{where}.tools", inner, str(tool.get("description") or ""), defers=defers)
        else:
            # The namespace's own words travel once, with its first tool: repeating them costs tokens.
            about = "" if index else about_namespace
            deferred = defers and tool.get("defer_loading") is True
            yield CatalogTool(where, kind, _name(kind, tool), namespace, without_nulls(tool), about, deferred)


def _name(kind: str, tool: JsonObject) -> str:
    if kind in NAMED_TYPES or kind == "namespace":
        return str(tool["name"])
    if kind == "mcp":
        return str(tool.get("server_label") or kind)
    return kind


def _number(entry: CatalogTool, unnamed: dict[str, int]) -> CatalogTool:
    """A second, different tool that has only its type for a name becomes `<type>_2`."""
    if entry.name != entry.type or entry.type in NAMED_TYPES:
        return entry
    count = unnamed[entry.type] = unnamed.get(entry.type, 0) + 1
    return entry if count == 1 else replace(entry, name=f"{entry.type}_{count}")
