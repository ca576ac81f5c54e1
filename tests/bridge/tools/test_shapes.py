"""Pieces of schemas: closed objects whose first property is required."""

from __future__ import annotations

from isthmus.bridge.tools.shapes import closed, field


def test_an_object_is_closed_and_needs_its_first_property() -> None:
    made = closed({"a": field("string", "A."), "b": field("integer", "B.", minimum=1), "c": {}}, "b")
    assert (made["required"], made["additionalProperties"]) == (["a", "b"], False)
    assert made["properties"]["b"] == {"type": "integer", "minimum": 1, "description": "B."}
