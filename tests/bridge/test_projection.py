"""Schema projection: refused keywords move into words, references are written out, nothing is mutated."""

from __future__ import annotations

import copy
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.projection import ROOT_WRAPPED, close_objects, project_parameters, project_schema

NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param(None, {"type": "object", "properties": {}}, id="missing"),
        pytest.param({}, {"type": "object", "properties": {}}, id="empty"),
        pytest.param(True, {"type": "object", "properties": {}}, id="boolean"),
        pytest.param({"type": "object"}, {"type": "object", "properties": {}}, id="no-properties"),
        pytest.param({"properties": {"a": {}}}, {"properties": {"a": {}}, "type": "object"}, id="type-left-out"),
        pytest.param(
            {"type": ["object", "null"], "properties": {}}, {"type": "object", "properties": {}}, id="nullable-object"
        ),
        pytest.param({"anyOf": [{}]}, {"anyOf": [{}], "type": "object"}, id="combination"),
    ],
)
def test_the_root_is_always_an_object(schema: Any, expected: dict[str, Any]) -> None:
    assert project_parameters(schema, NONE, False) == (expected, ())


def test_another_root_is_wrapped_and_reported() -> None:
    projected, dropped = project_parameters({"type": "string", "minLength": 1}, NONE, False)
    assert projected == {
        "type": "object",
        "properties": {"value": {"type": "string", "minLength": 1}},
        "required": ["value"],
    }
    assert dropped == (ROOT_WRAPPED,)


def test_an_acceptable_schema_is_passed_through_untouched() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
    assert project_parameters(schema, NONE, False)[0] is schema


def test_refused_keywords_move_into_the_description() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 3, "maximum": 9, "description": "How many."},
            "s": {"type": "string", "pattern": "^a"},
        },
    }
    projected, dropped = project_parameters(schema, frozenset({"minimum", "maximum", "pattern"}), False)
    assert projected["properties"] == {
        "n": {"type": "integer", "description": "How many. (minimum: 3; maximum: 9)"},
        "s": {"type": "string", "description": '(pattern: "^a")'},
    }
    assert dropped == ("minimum", "maximum", "pattern")


def test_a_property_that_is_named_like_a_keyword_stays() -> None:
    schema = {"type": "object", "properties": {"format": {"type": "string"}, "pattern": {"enum": ["format"]}}}
    projected, dropped = project_parameters(schema, frozenset({"format", "pattern"}), False)
    assert projected == schema
    assert dropped == ()


def test_near_synonyms_are_used_where_the_provider_takes_them() -> None:
    schema = {"type": "object", "properties": {"a": {"oneOf": [{"const": 1}, {"type": "string"}]}}}
    projected, dropped = project_parameters(schema, frozenset({"oneOf", "const"}), False)
    assert projected["properties"]["a"] == {"anyOf": [{"enum": [1]}, {"type": "string"}]}
    assert dropped == ("oneOf", "const")


def test_keywords_without_meaning_for_the_model_leave_no_words() -> None:
    schema = {"$schema": "x", "type": "object", "properties": {}, "additionalProperties": False}
    projected, dropped = project_parameters(schema, frozenset({"$schema", "additionalProperties"}), False)
    assert projected == {"type": "object", "properties": {}}
    assert dropped == ("$schema", "additionalProperties")


def test_references_are_written_out_and_definitions_disappear() -> None:
    schema = {
        "type": "object",
        "properties": {
            "at": {"$ref": "#/$defs/Point", "description": "Where."},
            "list": {"items": {"$ref": "#/$defs/N"}},
        },
        "$defs": {"Point": {"type": "object", "properties": {"x": {"$ref": "#/$defs/N"}}}, "N": {"type": "number"}},
    }
    projected, _ = project_parameters(schema, NONE, True)
    assert projected == {
        "type": "object",
        "properties": {
            "at": {"type": "object", "properties": {"x": {"type": "number"}}, "description": "Where."},
            "list": {"items": {"type": "number"}},
        },
    }


def test_recursion_is_cut_with_words() -> None:
    schema = {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "all": {"$ref": "#"}}}},
    }
    projected, _ = project_parameters(schema, NONE, True)
    node = projected["properties"]["root"]["properties"]
    assert node["next"] == {"type": "object", "description": "(same shape as Node)"}
    assert "$ref" not in str(projected)


@pytest.mark.parametrize("reference", ["https://example.com/s.json", "#anchor", "#/$defs/missing", "#/type"])
def test_a_reference_that_leads_nowhere_becomes_words(reference: str) -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": reference}}}
    projected, _ = project_parameters(schema, NONE, True)
    assert projected["properties"]["a"] == {"description": f"(see {reference})"}


def test_nested_references_cannot_explode() -> None:
    defs: dict[str, Any] = {"D0": {"type": "string"}}
    for level in range(1, 40):
        below = {"$ref": f"#/$defs/D{level - 1}"}
        defs[f"D{level}"] = {"type": "object", "properties": {"a": below, "b": below}}
    schema = {"type": "object", "properties": {"top": {"$ref": "#/$defs/D39"}}, "$defs": defs}
    started = time.thread_time()
    projected, _ = project_parameters(schema, NONE, True)
    assert time.thread_time() - started < 10  # some milliseconds; 2 to the power of 40 would never end
    assert len(str(projected)) < 1_000_000


json_schemas = st.recursive(
    st.sampled_from(
        [{"type": "string", "format": "date"}, {"type": "integer", "minimum": 1}, {"$ref": "#/$defs/A"}, True]
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abcdef"), inner, max_size=3)}
        ),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
    ),
    max_leaves=12,
)


@settings(max_examples=80, deadline=None)
@given(json_schemas, json_schemas, st.sets(st.sampled_from(["format", "minimum", "oneOf", "items", "$ref"])))
def test_projection_never_mutates_is_deterministic_and_stays_a_schema(body: Any, other: Any, drop: set[str]) -> None:
    schema = {"type": "object", "properties": {"x": body}, "$defs": {"A": other}}
    original = copy.deepcopy(schema)
    first = project_parameters(schema, frozenset(drop), True)
    assert schema == original
    assert project_parameters(schema, frozenset(drop), True) == first
    assert "$ref" not in str(first[0])
    jsonschema_rs.meta.validate(first[0])


@pytest.mark.parametrize(
    ("schema", "refused", "projected", "found"),
    [
        pytest.param({"type": "integer"}, {"minimum"}, {"type": "integer"}, (), id="nothing refused is there"),
        pytest.param(
            {"type": "integer", "minimum": 3},
            {"minimum"},
            {"type": "integer", "description": "(minimum: 3)"},
            ("minimum",),
            id="a keyword moves into a description of its own",
        ),
        pytest.param(
            {"type": "integer", "description": "Age.", "minimum": 3, "maximum": 9},
            {"minimum", "maximum"},
            {"type": "integer", "description": "Age. (minimum: 3; maximum: 9)"},
            ("minimum", "maximum"),
            id="keywords join the description",
        ),
        pytest.param(
            {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
            {"$schema"},
            {"type": "object"},
            ("$schema",),
            id="what says nothing about the value goes without a word",
        ),
        pytest.param(
            {"properties": {"minimum": {"type": "integer", "minimum": 1}}},
            {"minimum"},
            {"properties": {"minimum": {"type": "integer", "description": "(minimum: 1)"}}},
            ("minimum",),
            id="a property named like a keyword stays",
        ),
        pytest.param(
            {"anyOf": [{"items": {"pattern": "a"}}, True], "enum": [{"pattern": "b"}]},
            {"pattern"},
            {"anyOf": [{"items": {"description": '(pattern: "a")'}}, True], "enum": [{"pattern": "b"}]},
            ("pattern",),
            id="only places that hold schemas are walked",
        ),
    ],
)  # fmt: skip
def test_refused_keywords_move_into_descriptions(
    schema: dict[str, Any], refused: set[str], projected: dict[str, Any], found: tuple[str, ...]
) -> None:
    before = repr(schema)
    assert project_schema(schema, frozenset(refused)) == (projected, found)
    assert repr(schema) == before


def test_objects_are_closed_wherever_schemas_sit_and_nowhere_else() -> None:
    open_one = {
        "type": "object",
        "properties": {"properties": {"type": "string"}, "enum": {"enum": [{"type": "object"}]}},
    }
    schema = {
        "type": "object",
        "properties": {"a": open_one, "b": {"type": "array", "items": open_one}, "c": {"anyOf": [open_one]}},
        "$defs": {"d": open_one, "e": {"type": "object", "additionalProperties": {"type": "string"}}},
    }
    before = copy.deepcopy(schema)
    closed = close_objects(schema)
    assert schema == before
    shut = {**open_one, "additionalProperties": False}
    assert closed["properties"] == {"a": shut, "b": {"type": "array", "items": shut}, "c": {"anyOf": [shut]}}
    assert closed["$defs"] == {"d": shut, "e": schema["$defs"]["e"]}
    assert closed["additionalProperties"] is False
    assert close_objects(True) is True


def test_a_choice_at_the_root_becomes_one_object_where_the_provider_refuses_it() -> None:
    one = {"properties": {"a": {"type": "string"}, "c": {"anyOf": [{"type": "null"}]}}, "required": ["a"]}
    other = {"properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}, "required": ["b"]}
    schema = {"type": "object", "anyOf": [one, other], "properties": {"d": {}}, "required": ["d"]}
    before = copy.deepcopy(schema)
    projected, dropped = project_parameters(schema, NONE, False, True)
    assert schema == before
    assert dropped == ("anyOf",)
    assert set(projected["properties"]) == {"a", "b", "c", "d"}
    assert projected["properties"]["a"] == {"type": "string"}, "the first that names it"
    assert projected["properties"]["c"] == one["properties"]["c"], "only the root is meant"
    assert projected["required"] == ["d"]
    assert "anyOf" in projected["description"]
    assert project_parameters(schema, NONE, False)[0] is schema
