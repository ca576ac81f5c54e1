"""Tokens of the demo model: up to six letters of a word, or up to four other signs, with the space before them.

Answers are counted as they are streamed. A prompt is counted by its length, a quarter of its characters,
because it may be long. What an earlier turn of the same conversation must have sent counts as cached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_TOKEN: Final = re.compile(r"\s*+(?:\w{1,6}|[^\w\s]{1,4})|\s+")
_PER_MESSAGE: Final = 4
_PER_MEDIUM: Final = 85


def split_tokens(text: str) -> list[str]:
    """The pieces in which a text is streamed; joined they are the text."""
    return _TOKEN.findall(text)


def count_prompt(messages: Sequence[Mapping[str, Any]], tools: object) -> tuple[int, int]:
    """All tokens of the prompt, and those of them that a cache would know."""
    known = max((at for at, message in enumerate(messages) if message.get("role") == "assistant"), default=0)
    declared = _quarter(len(msgspec.json.encode(tools))) if tools else 0
    counts = [_count_message(message) for message in messages]
    cached = declared + sum(counts[:known]) if known else 0
    return declared + sum(counts), cached


def _count_message(message: Mapping[str, Any]) -> int:
    count = _PER_MESSAGE
    content = message.get("content")
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            count += _quarter(len(part))
        elif isinstance(part, Mapping):
            count += _quarter(len(part["text"])) if isinstance(part.get("text"), str) else _PER_MEDIUM
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        count += _quarter(len(msgspec.json.encode(calls)))
    thought = message.get("reasoning_content")
    return count + (_quarter(len(thought)) if isinstance(thought, str) else 0)


def _quarter(length: int) -> int:
    return (length + 3) // 4
