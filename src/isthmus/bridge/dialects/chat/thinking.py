"""`<think>…</think>` inside the text → reasoning, for models whose data says so.

A tag may be cut anywhere, so the shortest tail that could still become one is held back. Log probabilities stay with
the tokens of the text; those of tags and of thoughts have no place in a Response. Some templates (DeepSeek-R1,
Qwen3-Thinking) put `<think>` into the prompt, and the model answers from inside it: then `inside` is true from the
start. Where nobody said so and a lone `</think>` comes, what stood before it was told as text already: it stays text,
and a notice names the fact that is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from isthmus.bridge.deltas import Delta, Markup, Reasoning, Text
from isthmus.protocol.items import Logprob

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_STRAY: Final = (
    "`</think>` came without `<think>`, so the thoughts before it were told as text; "
    "if the model's template opens the tag itself, set `think_opened = true` in its `reply` rules"
)


class ThinkTags:
    def __init__(self, *, inside: bool = False) -> None:
        self._inside = inside
        self._held = ""
        self._after_close = self._told = self._stray = False
        self._at = 0  # how much of all text has been told or dropped
        self._tokens: list[tuple[int, Logprob]] = []
        """Log probabilities that wait for their text, each with the place where its token begins."""

    def feed_all(self, texts: list[str], out: list[Delta]) -> None:
        """Several pieces without log probabilities."""
        if self._held or self._after_close or self._tokens or "<" in "".join(texts):
            for text in texts:
                self.feed(text, out)
        else:  # as nearly always; no token waits that would have to know how far they have come
            out += map(Reasoning if self._inside else Text, texts)

    def feed(self, text: str, out: list[Delta], logprobs: list[Logprob] | None = None) -> None:
        at = self._at + len(self._held)
        for entry in logprobs or ():
            self._tokens.append((at, entry))
            at += len(entry["token"])
        text = self._held + text
        self._held = ""
        while "<" in text:  # in hardly any token
            tag = _CLOSE if self._inside else _OPEN
            before, found, after = text.partition(tag)
            if not self._inside and not self._stray and _CLOSE in before:
                self._stray = True
                out.append(Markup(_STRAY))
            if not found:
                keep = held_back(text, (tag,) if self._stray else (tag, _CLOSE))
                text, self._held = text[: len(text) - keep], text[len(text) - keep :]
                break
            self._put(before, out)
            self._drop(len(tag))
            self._inside = not self._inside
            self._after_close = not self._inside
            if not self._told:
                self._told = True
                out.append(Markup("think tags in the text were read as reasoning"))
            text = after
        self._put(text, out)

    def end(self, out: list[Delta]) -> None:
        held, self._held = self._held, ""
        self._put(held, out)

    def _put(self, text: str, out: list[Delta]) -> None:
        if self._after_close and not self._inside:
            bare = text.lstrip("\n")
            self._drop(len(text) - len(bare))
            text = bare
            self._after_close = not text
        if text:
            logprobs = self._drop(len(text))
            out.append(Reasoning(text) if self._inside else Text(text, logprobs or None))

    def _drop(self, size: int) -> list[Logprob]:
        """Move on; gives the log probabilities of the tokens that began on the way."""
        self._at += size
        if not self._tokens:
            return []
        passed = [entry for at, entry in self._tokens if at < self._at]
        self._tokens = self._tokens[len(passed) :]
        return passed


def held_back(text: str, tags: Iterable[str], plain: Callable[[str], str] = str) -> int:
    """How many characters at the end of a text could be the beginning of a tag, in the plain spelling of both."""
    start = text.rfind("<")
    tail = plain(text[start:]) if start >= 0 else ">"
    return len(text) - start if any(tag.startswith(tail) for tag in tags) else 0
