"""Every tool the client offered, in one flat list, wherever it was declared; and names that every provider accepts.

In: the request's `tools` and its input items. Out: one `CatalogTool` each, namespaces opened, in the order of
declaration: `tools` first, then those of `additional_tools` and `tool_search_output` items as they come. A tool
declared again without a change counts once. Names are letters, digits, `_`, `-`, at most 64 of them, unique. Tools
are only ever appended as a conversation grows, and one in a namespace is always `<namespace>__<name>`, even where the
bare name would be free today: a tool that is added later must not rename an earlier one, or prompt caches are lost.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from isthmus.bridge.types.history import item_path
from isthmus.bridge.types.tools import CatalogTool, ToolIdentityMap
from isthmus.protocol.json import JsonObject, without_nulls

NAMED_TYPES: Final = ("function", "custom")
"""Types that carry a name of their own; the others are known by their type."""
MAX_NAME: Final = 64
DEFAULT_NAMESPACE: Final = "functions"
"""The namespace that clients use for their plain functions: its tools keep their bare names."""
NameCodec = Callable[[str], str]
NameAllocator = Callable[[str], str]
_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH: Final = 8
CARRIERS: Final = frozenset({"additional_tools", "tool_search_output"})


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


def default_tool_name_codec(name: str) -> str:
    """Any text → a name that providers accept; different texts may meet, the allocator parts them."""
    return _REFUSED.sub("_", name)[:MAX_NAME] or "tool"


def create_provider_name_allocator(codec: NameCodec = default_tool_name_codec) -> NameAllocator:
    """A function that gives each tool a name of its own: the second `x` is `x_2`, the third `x_3`."""
    taken: set[str] = set()
    counts: dict[str, int] = {}

    def allocate(name: str) -> str:
        base = candidate = codec(name)
        count = counts.get(base, 1)
        while candidate in taken:
            count += 1
            suffix = f"_{count}"
            candidate = base[: MAX_NAME - len(suffix)] + suffix
        counts[base] = count
        taken.add(candidate)
        return candidate

    return allocate


def flat_name(name: str, namespace: str | None) -> str:
    """The one name under which a tool goes upstream, before the codec sees it."""
    if namespace is None or namespace == DEFAULT_NAMESPACE:
        return name
    full = f"{namespace}__{name}"
    if len(full) <= MAX_NAME:
        return full
    # A plain cut would make siblings of a long namespace collide; the tail depends on the whole name only.
    tail = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{full[: MAX_NAME - _HASH - 1]}_{tail}"


def name_past_call(name: str, namespace: str | None, identities: ToolIdentityMap) -> str:
    """The provider's name for a call in the history, also when its tool is not declared any more. Clients leave the
    default namespace out of their calls, or write it out, as they please."""
    if namespace is None or namespace == DEFAULT_NAMESPACE:
        found = identities.by_request(name) or identities.by_request(name, DEFAULT_NAMESPACE)
    else:
        found = identities.by_request(name, namespace)
    return found.provider_name if found is not None else default_tool_name_codec(flat_name(name, namespace))
