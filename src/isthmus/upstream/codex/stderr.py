"""The child's own words without secrets: the last lines of its stderr, and what it says of an error.

Two kinds are taken out: those that we handed over (see `isthmus.scrub`), and whatever looks like a secret, because
Codex has a login of its own that we never see.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any, Final

from isthmus.scrub import Scrub, unscrubbed

_COLOUR: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_SECRETS: Final = (
    re.compile(r"(?i)(bearer\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(
        r"(?i)((?:api[_-]?key|access[_-]?token|refresh[_-]?token|id[_-]?token|authorization|password|secret)"
        r"[\"']?\s*[:=]\s*[\"']?)[^\s\"',}]{4,}"
    ),
    re.compile(r"()\bsk-[A-Za-z0-9_-]{8,}"),
    re.compile(r"()\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"),
)


class StderrTail:
    """A ring of the last lines, cleaned as they come in."""

    def __init__(self, *, lines: int = 50, width: int = 500, scrub: Scrub = unscrubbed) -> None:
        self._scrub = scrub
        self._lines: deque[str] = deque(maxlen=lines)
        self._width = width

    def add(self, line: bytes) -> None:
        text = redact(self._scrub(line.decode("utf-8", "replace").rstrip()))
        if text:
            self._lines.append(text[: self._width])

    def text(self) -> str:
        return "\n".join(self._lines)


def redact_params(value: Any, scrub: Scrub) -> Any:
    """Every string in a message about an error."""
    match value:
        case str():
            return redact(scrub(value))
        case list():
            return [redact_params(inner, scrub) for inner in value]
        case dict():
            return {name: redact_params(inner, scrub) for name, inner in value.items()}
    return value


def redact(text: str) -> str:
    text = _COLOUR.sub("", text)
    for pattern in _SECRETS:
        text = pattern.sub(r"\1[redacted]", text)
    return text
