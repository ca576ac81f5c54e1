"""`<think>…</think>` inside the text → reasoning, for models whose data says so.

Incremental: a tag may be cut anywhere, so the shortest tail that could still become a tag is held back.
"""

from __future__ import annotations

from typing import Final

from isthmus.bridge.deltas import Delta, Markup, Reasoning, Text

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class ThinkTags:
    __slots__ = ("_after_close", "_held", "_inside", "_told")

    def __init__(self) -> None:
        self._inside = False
        self._held = ""
        self._after_close = False
        self._told = False

    def feed(self, text: str, out: list[Delta]) -> None:
        text = self._held + text
        self._held = ""
        while text:
            tag = _CLOSE if self._inside else _OPEN
            before, found, after = text.partition(tag)
            if not found:
                keep = _partial_tail(text, tag)
                self._held = text[len(text) - keep :] if keep else ""
                self._put(text[: len(text) - keep], out)
                return
            self._put(before, out)
            self._inside = not self._inside
            self._after_close = not self._inside
            if not self._told:
                self._told = True
                out.append(Markup("think tags in the text were read as reasoning"))
            text = after

    def end(self, out: list[Delta]) -> None:
        held, self._held = self._held, ""
        self._put(held, out)

    def _put(self, text: str, out: list[Delta]) -> None:
        if self._after_close and not self._inside:
            text = text.lstrip("\n")
            self._after_close = not text
        if text:
            out.append(Reasoning(text) if self._inside else Text(text))


def _partial_tail(text: str, tag: str) -> int:
    """How many characters at the end of `text` could be the beginning of `tag`."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:size]):
            return size
    return 0
