"""How large a client's JSON Schema may be: counted before anything is compiled, in time linear in its text.

In: a schema and `Bounds`. Out: nothing, or a 400 that names the limit, its value and its setting. The size with all
references written out is counted with a memo, so that forty lines that double each other forty times cost forty
steps here; a reference back to something open is recursion, which validators follow lazily, and counts once.
References that are not found here are left to the validator: it refuses them, or works under a deadline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from isthmus.errors import SCHEMA_TOO_LARGE, RequestRefused


@dataclass(frozen=True, slots=True)
class Bounds:
    """Each is the setting of its name under `[checks]`."""

    max_schema: int = 1_000_000
    """Bytes of one schema."""
    max_nodes: int = 25_000
    """Objects and lists in it."""
    max_depth: int = 64
    """How deeply they are nested."""
    max_expanded: int = 100_000
    """Objects and lists with every reference written out."""
    max_patterns: int = 500
    """Different regular expressions."""
    max_pattern: int = 10_000
    """Characters of one of them."""
    max_pattern_total: int = 100_000
    """Characters of all different ones together."""
    max_regex: int = 4_194_304
    """Bytes that one of them may take once compiled."""


DEFAULT_BOUNDS: Final = Bounds()


def check_bounds(schema: Any, bounds: Bounds, param: str) -> None:
    """Refuse a schema that is larger than allowed in anything but its bytes (see `check_bytes`)."""
    found = _survey(schema, bounds, param)
    if found.references:
        size = _expanded_size(schema, _find_targets(schema, found), bounds.max_expanded)
        _refuse_above(size, "max_expanded", bounds, param, "objects and lists once its references are written out")
    _refuse_above(len(found.patterns), "max_patterns", bounds, param, "different patterns")
    longest = max(map(len, found.patterns), default=0)
    _refuse_above(longest, "max_pattern", bounds, param, "characters in one pattern")
    total = sum(map(len, found.patterns))
    _refuse_above(total, "max_pattern_total", bounds, param, "characters in its patterns together")


def check_bytes(size: int, bounds: Bounds, param: str) -> None:
    """The same for the length of its text."""
    _refuse_above(size, "max_schema", bounds, param, "bytes")


def refuse_depth(most: int, param: str) -> RequestRefused:
    """What to raise where a walk over a schema finds it nested too deeply."""
    return _refusal("max_depth", most, param, f"is nested more than {most} levels deep")


@dataclass(slots=True)
class _Found:
    patterns: set[str]
    references: list[tuple[dict[str, Any], str]]
    anchors: dict[str, Any]
    ids: dict[str, Any]


def _survey(schema: Any, bounds: Bounds, param: str) -> _Found:
    """One walk over the text as it stands."""
    found = _Found(set(), [], {}, {})
    nodes = 0
    level = [schema]
    depth = 0
    while level:
        depth += 1
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                _note(node, found)
                below += [value for value in node.values() if isinstance(value, dict | list)]
            elif isinstance(node, list):
                below += [value for value in node if isinstance(value, dict | list)]
        nodes += len(level)
        _refuse_above(nodes, "max_nodes", bounds, param, "objects and lists")
        if below and depth >= bounds.max_depth:
            raise refuse_depth(bounds.max_depth, param)
        level = below
    return found


def _note(node: dict[str, Any], found: _Found) -> None:
    if isinstance(pattern := node.get("pattern"), str):
        found.patterns.add(pattern)
    if isinstance(named := node.get("patternProperties"), dict):
        found.patterns.update(named)
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if isinstance(reference := node.get(keyword), str):
            found.references.append((node, reference))
    for keyword in ("$anchor", "$dynamicAnchor"):
        if isinstance(anchor := node.get(keyword), str):
            found.anchors.setdefault(anchor, node)
    for keyword in ("$id", "id"):
        if isinstance(id := node.get(keyword), str):
            found.ids.setdefault(id.rstrip("#"), node)


def _find_targets(root: Any, found: _Found) -> dict[int, list[Any]]:
    """The identity of each referring object → what it refers to."""
    by_text: dict[str, Any] = {}
    targets: dict[int, dict[str, Any]] = {}
    for node, reference in found.references:
        if reference not in by_text:
            by_text[reference] = _resolve(reference, root, found)
        if by_text[reference] is not None:  # an object that stands in two places of a Python value is met twice
            targets.setdefault(id(node), {})[reference] = by_text[reference]
    return {key: list(named.values()) for key, named in targets.items()}


def _resolve(reference: str, root: Any, found: _Found) -> Any:
    base, _, fragment = reference.partition("#")
    start = root if not base else found.ids.get(base)
    if base and start is None:
        start = next((node for name, node in found.ids.items() if name.endswith(f"/{base}")), None)
    if not fragment or start is None:
        return start
    if not fragment.startswith("/"):
        return found.anchors.get(fragment) or found.ids.get(f"#{fragment}")
    for step in fragment[1:].split("/"):
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(start, dict):
            start = start.get(key)
        elif isinstance(start, list) and key.isascii() and key.isdigit() and int(key) < len(start):
            start = start[int(key)]
        else:
            return None
    return start if isinstance(start, dict | list) else None


def _expanded_size(root: Any, targets: dict[int, list[Any]], most: int) -> int:
    """The number of objects and lists with references written out; stops growing just above `most`.

    A loop with a stack of its own: a chain of references may be longer than Python's.
    """
    sizes: dict[int, int] = {}
    opened: dict[int, list[Any]] = {}
    if isinstance(root, dict):
        # What is only defined costs nothing: it counts where something refers to it.
        whole, root = root, {name: value for name, value in root.items() if name not in _DEFINITIONS}
        targets = {**targets, id(root): targets.get(id(whole), [])}
    stack = [root]
    while stack:
        node = stack[-1]
        key = id(node)
        if key not in opened:
            opened[key] = below = _below(node, targets)
            stack += [child for child in below if id(child) not in opened]
            continue
        stack.pop()
        if key not in sizes:
            # One that is still open is an ancestor: recursion, counted once.
            size = 1 + sum([sizes.get(id(child), 1) for child in opened[key]])
            sizes[key] = min(size, most + 1)
    return sizes[id(root)]


_DEFINITIONS: Final = frozenset({"$defs", "definitions"})


def _below(node: Any, targets: dict[int, list[Any]]) -> list[Any]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    below = [value for value in inner if isinstance(value, dict | list)]
    return below + targets[id(node)] if id(node) in targets else below


def _refuse_above(size: int, setting: str, bounds: Bounds, param: str, what: str) -> None:
    most = getattr(bounds, setting)
    if size > most:
        # Counting stops at the limit in some places, so the size itself is not told.
        raise _refusal(setting, most, param, f"has more than {most:,} {what}")


def _refusal(setting: str, most: int, param: str, what: str) -> RequestRefused:
    return RequestRefused(
        f"`{param}` {what}, the limit `checks.{setting}` of this gateway; send a simpler schema, or raise the limit",
        code=SCHEMA_TOO_LARGE,
        param=param,
        metadata={"limit": most, "setting": f"checks.{setting}"},
    )
