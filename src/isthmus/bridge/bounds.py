"""How large a client's JSON Schema may be: counted before anything is compiled, in time linear in its text.

In: a schema and `Bounds`. Out: nothing, or a 400 that names the limit, its value and its setting. The size with all
references written out is counted with a memo, so that forty lines that double each other forty times cost forty
steps here; a reference back to something open is recursion, which validators follow lazily, and counts once.
References that are not found here are left to the validator: it refuses them, or works under a deadline.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

import msgspec

from isthmus.errors import SCHEMA_TOO_LARGE, RequestRefused


class Bounds(msgspec.Struct, frozen=True):
    """Each is the setting of its name under `[checks]`, where it is described."""

    max_schema: int = 1_000_000
    max_nodes: int = 25_000
    max_depth: int = 64
    max_expanded: int = 100_000
    max_patterns: int = 500
    max_pattern: int = 10_000
    max_pattern_total: int = 100_000
    max_regex: int = 4_194_304


REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
DEFINITIONS: Final = frozenset({"$defs", "definitions"})
DEFAULT_BOUNDS: Final = Bounds()


def check_bounds(schema: Any, bounds: Bounds, param: str) -> None:
    """Refuse a schema that is larger than allowed in anything but its bytes (see `check_bytes`)."""
    found = _survey(schema, bounds, param)
    if found.references:
        targets = {reference: _resolve(reference, schema, found) for reference in found.references}
        size = _expanded_size(schema, targets, bounds.max_expanded)
        what = "has more than {} objects and lists once its references are written out"
        _refuse_above(size, "max_expanded", bounds, param, what)
    lengths = [len(pattern) for pattern in found.patterns]
    _refuse_above(len(lengths), "max_patterns", bounds, param, "has more than {} different patterns")
    _refuse_above(max(lengths, default=0), "max_pattern", bounds, param, "has more than {} characters in one pattern")
    what = "has more than {} characters in its patterns together"
    _refuse_above(sum(lengths), "max_pattern_total", bounds, param, what)


def check_bytes(size: int, bounds: Bounds, param: str) -> None:
    _refuse_above(size, "max_schema", bounds, param, "has more than {} bytes")


def follow_pointer(document: Any, pointer: str) -> Any:
    """What a JSON pointer (without its leading `/`) leads to; `None`: nothing."""
    for step in pointer.split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isascii() and key.isdigit() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document


class _Found(msgspec.Struct):
    patterns: set[str] = set()
    references: set[str] = set()
    named: dict[str, Any] = {}
    """What has an id, or an anchor (with a `#` before it)."""


def _survey(schema: Any, bounds: Bounds, param: str) -> _Found:
    found = _Found()
    nodes = depth = 0
    level = [schema]
    while level:
        depth += 1
        nodes += len(level)
        _refuse_above(nodes, "max_nodes", bounds, param, "has more than {} objects and lists")
        for node in level:
            if isinstance(node, dict):
                _note(node, found)
        level = [child for node in level for child in _children(node)]
        _refuse_above(depth + bool(level), "max_depth", bounds, param, "is nested more than {} levels deep")
    return found


def _children(node: Any) -> list[Any]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return [value for value in inner if isinstance(value, dict | list)]


def _note(node: dict[str, Any], found: _Found) -> None:
    if isinstance(pattern := node.get("pattern"), str):
        found.patterns.add(pattern)
    if isinstance(named := node.get("patternProperties"), dict):
        found.patterns.update(named)
    found.references.update(_references(node))
    for keyword in ("$anchor", "$dynamicAnchor", "$id", "id"):
        if isinstance(name := node.get(keyword), str):
            found.named.setdefault(name.rstrip("#") if keyword.endswith("id") else f"#{name}", node)


def _references(node: dict[str, Any]) -> set[str]:
    return {node[keyword] for keyword in REFERENCES if isinstance(node.get(keyword), str)}


def _resolve(reference: str, root: Any, found: _Found) -> Any:
    base, _, fragment = reference.partition("#")
    start = root if not base else found.named.get(base)
    if base and start is None:
        start = next((node for name, node in found.named.items() if name.endswith(f"/{base}")), None)
    if not fragment or start is None:
        return start
    if not fragment.startswith("/"):
        return found.named.get(f"#{fragment}")
    target = follow_pointer(start, unquote(fragment[1:]))
    return target if isinstance(target, dict | list) else None


def _expanded_size(root: Any, targets: dict[str, Any], most: int) -> int:
    """The number of objects and lists with references written out; stops growing just above `most`. A loop with a stack
    of its own: a chain of references may be longer than Python's."""
    sizes: dict[int, int] = {}
    opened: dict[int, list[Any]] = {}
    if isinstance(root, dict):
        # What is only defined costs nothing: it counts where something refers to it.
        root = {name: value for name, value in root.items() if name not in DEFINITIONS}
    stack = [root]
    while stack:
        node = stack[-1]
        key = id(node)
        if key not in opened:
            below = _children(node)
            if isinstance(node, dict):
                below += [targets[name] for name in _references(node) if targets[name] is not None]
            opened[key] = below
            stack += [child for child in below if id(child) not in opened]
            continue
        stack.pop()
        if key not in sizes:
            # One that is still open is an ancestor: recursion, counted once.
            size = 1 + sum([sizes.get(id(child), 1) for child in opened[key]])
            sizes[key] = min(size, most + 1)
    return sizes[id(root)]


def _refuse_above(size: int, setting: str, bounds: Bounds, param: str, what: str) -> None:
    most = getattr(bounds, setting)
    if size > most:
        # Counting stops at the limit in some places, so the size itself is not told.
        words = f"{what.format(f'{most:,}')}, the limit `checks.{setting}` of this gateway"
        raise RequestRefused(
            f"`{param}` {words}; send a simpler schema, or raise the limit",
            code=SCHEMA_TOO_LARGE,
            param=param,
            metadata={"limit": most, "setting": f"checks.{setting}"},
        )
