"""The shapes that a Messages request is checked against."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from isthmus.protocol.messages import CountTokens, CreateMessage

TURNS = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    "given",
    [
        {"model": "m", "max_tokens": 1, "messages": TURNS},
        {"model": "m", "max_tokens": 1, "messages": TURNS, "a_beta_that_nobody_knows": {"x": 1}},
        {"model": "m", "max_tokens": 1, "messages": TURNS, "system": [{"type": "text", "text": "s"}]},
        {"model": "m", "max_tokens": 1, "messages": TURNS, "thinking": {"type": "adaptive", "display": "updates"}},
        {"model": "m", "max_tokens": 1, "messages": TURNS, "output_config": {"effort": "max", "task_budget": {}}},
    ],
)
def test_what_clients_send_is_taken(given: Any) -> None:
    assert msgspec.convert(given, CreateMessage)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_tokens": 1, "messages": TURNS}, "model"),
        ({"model": "m", "messages": TURNS}, "max_tokens"),
        ({"model": "m", "max_tokens": 1}, "messages"),
        ({"model": "m", "max_tokens": "1", "messages": TURNS}, "max_tokens"),
        ({"model": "m", "max_tokens": 1, "messages": TURNS, "thinking": "on"}, "thinking"),
        ({"model": "m", "max_tokens": 1, "messages": TURNS, "thinking": {"budget_tokens": 1}}, "type"),
    ],
)
def test_a_wrong_type_is_refused_by_name(given: Any, field: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=field):
        msgspec.convert(given, CreateMessage)


def test_a_count_needs_no_limit() -> None:
    assert msgspec.convert({"model": "m", "messages": TURNS}, CountTokens)
