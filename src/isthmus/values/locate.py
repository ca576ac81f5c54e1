"""On which line of a TOML file does a key stand?

In: the text of a file that has been parsed whole. Out: key path → line. The parser at hand gives no lines, so the text
is cut into statements and each is parsed by itself: lines are gathered until they parse. Array tables count as one
value and stand at their first header.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from isthmus.values.problems import KeyPath


def locate_keys(text: str) -> dict[KeyPath, int]:
    """The line of every key and table; a key inside an inline table stands where its statement begins."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, header, parsed in _statements(text):
        if header:
            table = next(iter(_deepest(parsed)))
        for path in [table] if header else ((*table, *path) for path in _paths(parsed)):
            for length in range(1, len(path) + 1):
                lines.setdefault(path[:length], line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, bool, dict[str, Any]]]:
    gathered: list[str] = []
    start = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not gathered:
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            start = number
        gathered.append(line)
        try:
            parsed = tomllib.loads("\n".join(gathered))
        except tomllib.TOMLDecodeError:
            continue
        yield start, gathered[0].lstrip().startswith("["), parsed
        gathered = []


def _deepest(parsed: Any) -> Iterator[KeyPath]:
    """The one path of a header: `[a."b.c"]` → `("a", "b.c")`; `[[a]]` → `("a",)`."""
    path: KeyPath = ()
    while isinstance(parsed, dict) and parsed:
        key = next(iter(parsed))
        path, parsed = (*path, key), parsed[key]
    yield path


def _paths(parsed: dict[str, Any], above: KeyPath = ()) -> Iterator[KeyPath]:
    for key, value in parsed.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, (*above, key))
        else:
            yield (*above, key)
