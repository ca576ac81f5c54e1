"""Token usage: its parts always add up to its total, whatever a vendor leaves out of them."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Usage
from isthmus.bridge.dialects.chat.usage import UsageReader

CASES: dict[str, tuple[dict[str, Any], Usage]] = {
    "xAI: thinking beside the completion": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 1,
            "total_tokens": 399,
            "completion_tokens_details": {"reasoning_tokens": 386},
        },
        Usage(12, 387, 399, reasoning_tokens=386),
    ),
    "Gemini: thinking in the total only": (
        {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623},
        Usage(20, 603, 623),
    ),
    "OpenAI: thinking inside the completion": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 30,
            "total_tokens": 40,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Usage(10, 30, 40, reasoning_tokens=20),
    ),
    "a total below its parts": ({"prompt_tokens": 10, "completion_tokens": 30, "total_tokens": 3}, Usage(10, 30, 40)),
}


@pytest.mark.parametrize(("given", "read"), CASES.values(), ids=list(CASES))
def test_usage_adds_up(given: dict[str, Any], read: Usage) -> None:
    assert UsageReader(ReplyRules()).read(given) == read
