from __future__ import annotations

from typing import Any

import pytest

from isthmus.demo.tokens import count_prompt, split_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello there!", ["Hello", " there", "!"]),
        ("Incomprehensible", ["Incomp", "rehens", "ible"]),
        ("?!?!?!  ", ["?!?!", "?!", "  "]),
        ("", []),
    ],
)
def test_a_text_is_streamed_in_pieces(text: str, tokens: list[str]) -> None:
    assert split_tokens(text) == tokens


@pytest.mark.parametrize(
    ("message", "count"),
    [
        ({"role": "user", "content": "12345678"}, 4 + 2),
        ({"role": "user", "content": [{"text": "1234"}, {"type": "image_url"}]}, 4 + 1 + 85),
        ({"role": "assistant", "content": None, "reasoning_content": "1234"}, 4 + 1),
        ({"role": "assistant", "tool_calls": [{"a": 1}]}, 4 + 3),
    ],
)
def test_a_message_is_counted_by_its_length(message: dict[str, Any], count: int) -> None:
    assert count_prompt([message], None) == (count, 0)


def test_what_the_turn_before_sent_is_cached_with_the_tools() -> None:
    messages = [{"role": "user", "content": "1234"}, {"role": "assistant", "content": "1234"}, {"role": "user"}]
    whole, cached = count_prompt(messages, [{"a": 1}])
    assert (whole, cached) == (3 + 5 + 5 + 4, 3 + 5)
