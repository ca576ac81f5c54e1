"""Token usage as vendors report it → one `Usage`. Missing totals are computed; odd types never raise."""

from __future__ import annotations

from typing import Any

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Usage
from isthmus.protocol.json import JsonObject

Paths = tuple[tuple[str, ...], ...]


class UsageReader:
    """Reads usage objects by the field paths of one model's data."""

    __slots__ = ("_cached", "_reasoning")

    def __init__(self, rules: ReplyRules) -> None:
        self._cached: Paths = tuple(tuple(path.split(".")) for path in rules.cached_tokens)
        self._reasoning: Paths = tuple(tuple(path.split(".")) for path in rules.reasoning_tokens)

    def read(self, usage: JsonObject) -> Usage | None:
        given_input = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
        given_output = _count(usage.get("completion_tokens", usage.get("output_tokens")))
        total = _count(usage.get("total_tokens"))
        if not given_input and not given_output and not total:
            return None  # none at all, or zeros that a vendor puts on every chunk (MiniMax)
        output = given_output if given_output is not None else max((total or 0) - (given_input or 0), 0)
        input_ = given_input if given_input is not None else max((total or 0) - output, 0)
        # xAI and Gemini leave the tokens of thinking out of `completion_tokens`, but not out of the total
        # (vercel/ai#12425, any-llm#1290, read 2026-11-16); in Responses they are output. And a total is never below
        # its parts.
        total = max(total or 0, input_ + output)
        return Usage(
            input_tokens=input_,
            output_tokens=total - input_,
            total_tokens=total,
            cached_tokens=_first(usage, self._cached),
            reasoning_tokens=_first(usage, self._reasoning),
            cache_write_tokens=_count(usage.get("cache_creation_input_tokens")) or 0,
        )


def find_usage(chunk: JsonObject) -> JsonObject | None:
    """The usage object of a chunk or reply, in every place vendors put it."""
    usage = chunk.get("usage")
    if isinstance(usage, dict) and usage:
        return usage
    choices = chunk.get("choices")
    inner = (chunk.get("x_groq"), choices[0] if isinstance(choices, list) and choices else None)
    for place in inner:
        usage = place.get("usage") if isinstance(place, dict) else None
        if isinstance(usage, dict) and usage:
            return usage
    return None


def _first(usage: JsonObject, paths: Paths) -> int:
    for path in paths:
        value: Any = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        count = _count(value)
        if count is not None:
            return count
    return 0


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return int(value)
