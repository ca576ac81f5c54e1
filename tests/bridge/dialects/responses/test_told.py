"""How the parts of upstream items are read. Odd types never raise."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.dialects.responses.told import Told, ToldPart, WholePart, read_parts, read_phase


def test_parts_are_read_in_the_order_in_which_they_are_told() -> None:
    thought = {
        "type": "reasoning",
        "content": [{"type": "reasoning_text", "text": "t"}],
        "summary": [{"type": "summary_text", "text": "s"}],
    }
    assert read_parts(thought) == [WholePart("summary_text", "s"), WholePart("reasoning_text", "t")]
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}, {"text": "a"}]}
    assert read_parts(message) == [WholePart("refusal", "no"), WholePart("output_text", "a")]


@pytest.mark.parametrize("content", [None, "text", [None, 7, "x"], {"a": 1}])
def test_what_is_no_part_is_none(content: Any) -> None:
    assert read_parts({"type": "message", "content": content, "summary": content}) == []


@pytest.mark.parametrize(("given", "read"), [("commentary", "commentary"), ("odd", None), (None, None), ([], None)])
def test_only_phases_that_clients_know_are_told(given: Any, read: str | None) -> None:
    assert read_phase(given) == read


def test_parts_are_counted_by_kind() -> None:
    told = Told("message")
    told.parts = [ToldPart("output_text", 0), ToldPart("refusal", 1), ToldPart("output_text", 2)]
    told.parts[0].say("a")
    told.parts[2].say("b")
    assert told.part("output_text", 1) is told.parts[2]
    assert told.part("refusal", 1) is None
    assert told.spoken("output_text") == "ab"
