"""Names that every provider accepts, and that never change while a conversation grows.

In: a tool's own name and namespace. Out: letters, digits, `_`, `-`, at most 64 of them, unique. A tool in
a namespace is always `<namespace>__<name>`, even where the bare name would be free today: a tool that is
added later must not rename an earlier one, or the provider's prompt cache is lost.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Final

from isthmus.bridge.tools.types import CatalogTool

MAX_NAME: Final = 64
DEFAULT_NAMESPACE: Final = "functions"
"""The namespace that clients use for their plain functions: its tools keep their bare names."""

NameCodec = Callable[[str], str]
NameAllocator = Callable[[str], str]

_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH: Final = 8


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


def flat_name(tool: CatalogTool) -> str:
    """The one name under which a tool goes upstream, before the codec sees it."""
    if tool.namespace is None or tool.namespace == DEFAULT_NAMESPACE:
        return tool.name
    full = f"{tool.namespace}__{tool.name}"
    if len(full) <= MAX_NAME:
        return full
    # A plain cut would make siblings of a long namespace collide; the tail depends on the whole name only.
    tail = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{full[: MAX_NAME - _HASH - 1]}_{tail}"
