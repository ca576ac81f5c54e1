from __future__ import annotations

from typing import Any

import pytest

from isthmus.demo.schema_merge import branches_of, kind_of, merged, resolve


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"minimum": 1, "maxLength": 5}, {"minimum": 3, "maxLength": 4}, {"minimum": 3, "maxLength": 4}),
        ({"required": ["a"]}, {"required": ["b", "a"]}, {"required": ["a", "b"]}),
        ({"enum": [1, 2]}, {"enum": [2, 3]}, {"enum": [2]}),
        ({"type": "integer"}, {"type": "number"}, {"type": "integer"}),
        ({"type": ["string", "null"]}, {"type": "null"}, {"type": ["null"]}),
        ({"multipleOf": 2}, {"multipleOf": 3}, {"multipleOf": 6}),
        (
            {"properties": {"a": {"minimum": 1}}},
            {"properties": {"a": {"minimum": 2}, "b": {}}},
            {"properties": {"a": {"minimum": 2}, "b": {}}},
        ),
        (
            {"additionalProperties": False},
            {"additionalProperties": {"type": "string"}},
            {"additionalProperties": False},
        ),
        ({"title": "one"}, {"title": "other"}, {"title": "other"}),
        ({"a": 1}, True, {"a": 1}),
    ],
)
def test_what_satisfies_both(one: dict[str, Any], other: Any, both: dict[str, Any]) -> None:
    assert merged(one, other) == both


def test_references_and_all_of_are_folded_in() -> None:
    root = {"$defs": {"a/b": {"type": "integer"}}, "list": [{"minimum": 2}]}
    folded = resolve({"allOf": [{"$ref": "#/$defs/a~1b"}], "maximum": 9}, root)
    assert folded == {"type": "integer", "maximum": 9}
    assert resolve({"$ref": "#/list/0", "maximum": 9}, root) == {"minimum": 2, "maximum": 9}
    for nowhere in ("#/$defs/none", "#/list/7", "https://example.com/schema"):
        assert resolve({"$ref": nowhere}, root) == {}


def test_a_reference_to_itself_ends() -> None:
    root = {"$defs": {"a": {"$ref": "#/$defs/a"}}}
    assert resolve({"$ref": "#/$defs/a"}, root) in ({}, {"$ref": "#/$defs/a"})


def test_branches_carry_what_stands_around_them_and_the_small_come_first_when_lean() -> None:
    schema = {"title": "t", "anyOf": [{"type": "null"}, {"type": "object"}, {"type": "string"}, False, True]}
    kinds = [kind_of(branch) for branch in branches_of(schema, "anyOf", schema, lean=False)]
    assert kinds == ["object", "string", "string", "null"]
    lean = branches_of(schema, "anyOf", schema, lean=True)
    assert [kind_of(branch) for branch in lean] == ["null", "string", "string", "object"]
    assert all(branch["title"] == "t" for branch in lean)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "array"}, "array"),
        ({"type": ["null", "integer"]}, "integer"),
        ({"type": ["null"]}, "null"),
        ({"properties": {}}, "object"),
        ({"items": {}}, "array"),
        ({"minimum": 1}, "number"),
        ({}, "string"),
        (True, "string"),
    ],
)
def test_the_type_to_make(schema: Any, kind: str) -> None:
    assert kind_of(schema) == kind
