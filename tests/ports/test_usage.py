"""What was used, whatever a provider leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.ports.usage import used_tokens


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, (0, 0, 0, 0)),
        ({"input_tokens": 9, "output_tokens": None}, (9, 0, 0, 0)),
        ({"input_tokens_details": None, "output_tokens_details": {}}, (0, 0, 0, 0)),
        ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}}, (9, 0, 4, 0)),
        ({"output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 5}}, (0, 9, 0, 5)),
    ],
)
def test_what_is_not_told_is_none_at_all(usage: dict[str, Any], tokens: tuple[int, ...]) -> None:
    assert used_tokens(usage) == tokens
