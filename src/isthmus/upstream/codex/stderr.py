"""The child's stderr: the last lines only, without colours and without secrets."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

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

    def __init__(self, *, lines: int = 50, width: int = 500) -> None:
        self._lines: deque[str] = deque(maxlen=lines)
        self._width = width

    def add(self, line: bytes) -> None:
        text = redact(line.decode("utf-8", "replace").rstrip())
        if text:
            self._lines.append(text[: self._width])

    def text(self) -> str:
        return "\n".join(self._lines)


def redact(text: str) -> str:
    text = _COLOUR.sub("", text)
    for pattern in _SECRETS:
        text = pattern.sub(r"\1[redacted]", text)
    return text
