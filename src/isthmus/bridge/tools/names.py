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

from isthmus.bridge.types.tools import ToolIdentityMap

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
    """The provider's name for a call in the history, also when its tool is not declared any more.

    Clients leave the default namespace out of their calls, or write it out, as they please.
    """
    spaces = (None, DEFAULT_NAMESPACE) if namespace in (None, DEFAULT_NAMESPACE) else (namespace,)
    known = (identities.by_request(name, space) for space in spaces)
    found = next((identity for identity in known if identity is not None), None)
    return found.provider_name if found is not None else default_tool_name_codec(flat_name(name, namespace))
