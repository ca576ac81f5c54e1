"""How the parts of upstream items are read. Odd types never raise."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.dialects.responses.told import Told, ToldItems, ToldPart, read_parts, text_of_part


def texts(item: dict[str, Any]) -> list[tuple[str, str]]:
    return [(kind, text_of_part(part)) for kind, part in read_parts(item)]


def test_parts_are_read_in_the_order_in_which_they_are_told() -> None:
    thought = {
        "type": "reasoning",
        "content": [{"type": "reasoning_text", "text": "t"}],
        "summary": [{"type": "summary_text", "text": "s"}],
    }
    assert texts(thought) == [("summary_text", "s"), ("reasoning_text", "t")]
    message = {"type": "message", "content": [{"type": "refusal", "refusal": "no"}, {"text": "a"}]}
    assert texts(message) == [("refusal", "no"), ("output_text", "a")]


@pytest.mark.parametrize("content", [None, "text", [None, 7, "x"], {"a": 1}])
def test_what_is_no_part_is_none(content: Any) -> None:
    assert read_parts({"type": "message", "content": content, "summary": content}) == []


def test_a_part_is_open_until_another_item_speaks() -> None:
    told = Told("message")
    told.parts = [ToldPart("output_text", 0), ToldPart("refusal", 1), ToldPart("output_text", 2)]
    told.parts[2].say("b")
    assert told.open_part("output_text") is told.parts[2]
    assert told.open_part("refusal") is None
    told.left = 3
    assert told.open_part("output_text") is None


def test_a_part_that_was_announced_and_left_without_a_word_is_forgotten() -> None:
    said = ToldPart("output_text", opened=True)
    told = Told("message", parts=[said, ToldPart("output_text")])
    told.drop_unsaid()
    told.drop_unsaid()
    assert told.parts == [said]


def test_an_item_is_found_by_its_index_its_id_or_as_the_newest_of_its_kind() -> None:
    items = ToldItems()
    first = items.find({"output_index": 0}, "message", {"id": "a"})
    second = items.find({"output_index": 1, "item_id": "b"}, "")
    assert items.find({"output_index": 0, "item_id": "b"}, "message") is first
    assert items.find({"item_id": "a"}, "message") is first
    assert items.find({}, "message") is second
    assert second.kind == "message"
    assert items.find({}, "message", {}) not in (first, second)


def test_items_of_the_final_object_are_known_again_under_other_ids_and_places() -> None:
    items = ToldItems()
    thought = items.find({"output_index": 0}, "reasoning")
    said = items.find({"output_index": 1}, "message")
    output = [{"type": "message", "id": "other"}, "junk", {"type": "message"}]
    [(known, _), (new, _)] = items.match(output)
    assert known is said
    assert new not in (thought, said)
    assert items.match("junk") == []
