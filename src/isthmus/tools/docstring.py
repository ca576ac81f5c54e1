"""A docstring → the tool's description, and one for each parameter (Google, NumPy and Sphinx styles)."""

from __future__ import annotations

import inspect
import re
from typing import Final

_HEADING: Final = re.compile(r"^(args|arguments|parameters|params)\s*:?\s*$", re.IGNORECASE)
_SECTION: Final = re.compile(r"^(returns?|raises?|yields?|examples?|notes?|see also|warnings?)\s*:?\s*$", re.IGNORECASE)
_SPHINX: Final = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+)\s*:\s*(.*)$")
_GOOGLE: Final = re.compile(r"^(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_NUMPY: Final = re.compile(r"^(\w+)\s*(?::.*)?$")


def read_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """What comes before the first section is the description."""
    lines = inspect.cleandoc(text or "").splitlines()
    description: list[str] = []
    parameters: dict[str, str] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        sphinx = _SPHINX.match(line.strip())
        if sphinx:
            parameters[sphinx[1]] = sphinx[2].strip()
        elif _HEADING.match(line):
            index = _read_parameters(lines, index + 1, parameters)
            continue
        elif _SECTION.match(line) or line.strip().startswith((":return", ":raise", ":rtype")):
            break
        else:
            description.append(line)
        index += 1
    return "\n".join(description).strip(), parameters


def _read_parameters(lines: list[str], start: int, found: dict[str, str]) -> int:
    """Read one list of parameters; the index of the first line behind it."""
    numpy = start < len(lines) and set(lines[start].strip()) == {"-"}
    index = start + 1 if numpy else start
    current = ""
    margin: int | None = None
    while index < len(lines):
        line = lines[index]
        words, indent = line.strip(), len(line) - len(line.lstrip())
        if words and (_SECTION.match(line) or (indent == 0 and not numpy)):
            break
        if words:
            margin = indent if margin is None else margin
            head = (_NUMPY if numpy else _GOOGLE).match(words) if indent <= margin else None
            if head:
                current = head[1]
                found[current] = "" if numpy else head[2].strip()
            elif current:
                found[current] = f"{found[current]} {words}".strip()
        index += 1
    return index
