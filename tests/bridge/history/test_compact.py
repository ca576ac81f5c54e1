"""What compaction makes of a conversation, item by item."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.history.compact import (
    ASK,
    DEFAULT_THRESHOLD,
    INSTRUCTIONS,
    asks_compaction,
    compacted,
    cut_history,
    read_threshold,
    says,
    summary_request,
    user_messages,
)
from isthmus.bridge.parse import parse_request
from isthmus.errors import RequestRefused

Json = dict[str, Any]
ASKED: Json = {"type": "message", "role": "user", "content": "Why?"}
SAID: Json = {"type": "message", "role": "assistant", "content": "Because."}
RULE: Json = {"type": "message", "role": "system", "content": "Be kind."}
SUMMARY: Json = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
TRIGGER: Json = {"type": "compaction_trigger"}


def test_only_a_trigger_at_the_end_asks() -> None:
    assert asks_compaction([ASKED, TRIGGER])
    assert not asks_compaction([ASKED, SUMMARY])
    assert not asks_compaction([])
    with pytest.raises(RequestRefused) as refused:
        asks_compaction([ASKED, TRIGGER, SAID])
    assert refused.value.param == "input[1]"


@pytest.mark.parametrize(
    ("rules", "window", "expected"),
    [
        ([{"type": "compaction", "compact_threshold": 5000}], 1000, 5000),
        ([{"type": "compaction"}], 100_000, 80_000),
        ([{"type": "compaction", "compact_threshold": None}], None, DEFAULT_THRESHOLD),
        ([{"type": "other"}, {"type": "compaction", "compact_threshold": 1000}], None, 1000),
        ([{"type": "other"}], 1000, None),
        ([], 1000, None),
        (None, 1000, None),
    ],
)
def test_the_threshold_is_the_clients_or_a_share_of_the_window(
    rules: list[Json] | None, window: int | None, expected: int | None
) -> None:
    assert read_threshold({"context_management": rules}, window) == expected  # type: ignore[typeddict-unknown-key]


def test_a_summary_is_asked_for_without_what_concerns_the_answer() -> None:
    body = {
        "model": "m", "input": [RULE, ASKED, TRIGGER], "instructions": "Be brief.", "tools": [{"type": "web_search"}],
        "tool_choice": "required", "text": {"format": {"type": "json_object"}}, "reasoning": {"effort": "low"},
        "max_output_tokens": 5, "prompt_cache_key": "k", "truncation": "auto",
    }  # fmt: skip
    asked = summary_request(parse_request(body))
    assert asked.body["instructions"] == INSTRUCTIONS
    assert {*asked.body} == {"model", "input", "instructions", "reasoning", "prompt_cache_key"}
    assert asked.items == (RULE, ASKED, {"type": "message", "role": "user", "content": ASK})


def test_neither_the_user_nor_the_rules_are_ever_summarised() -> None:
    items = [RULE, ASKED, SAID, {"type": "reasoning", "summary": []}, ASKED]
    assert user_messages(items) == [ASKED, ASKED]
    rules = [item for item in items if item.get("role") == "system"]
    assert rules
    assert compacted(items, SUMMARY) == [item for item in items if item in (ASKED, *rules)] + [SUMMARY]
    assert says(RULE, "system", "developer")
    assert not says(SUMMARY, "user")


def test_a_chain_is_cut_at_its_newest_summary_of_ours() -> None:
    newer = {**SUMMARY, "id": "cmp_2"}
    items = [ASKED, SAID, SUMMARY, SAID, ASKED, newer, SAID]
    ours = [False, True, True, True, False, True, True]
    assert cut_history(items, ours) == [ASKED, ASKED, newer, SAID]


def test_what_a_client_put_before_a_summary_stays() -> None:
    items = [SAID, ASKED, SUMMARY, ASKED]
    assert cut_history(items, [False] * 4) == items
    assert cut_history([], []) == []
