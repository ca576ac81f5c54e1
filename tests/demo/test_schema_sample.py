from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from demo_requests import STRING, ask, say, with_results
from demo_requests import WEATHER as WEATHER_TOOL
from isthmus.demo.schema_sample import sample
from isthmus.demo.supply import Supply
from isthmus.demo.words import read_words

TEXT = "Ada (ada@example.org) and Bob Smith, 36 and 7.5 years old, met on 2026-03-04 in red at https://example.org/x"
INTEGER = {"type": "integer"}


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def to_schema(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "it", "schema": schema, "strict": True}}


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("Ada Lovelace is 36 years old", form(name=STRING, age=INTEGER), {"name": "Ada Lovelace", "age": 36}),
        (
            "Alice and Bob are going to a science fair on Friday.",
            form(date=STRING, participants={"type": "array", "items": STRING}),
            {"date": "Friday", "participants": ["Alice", "Bob"]},
        ),
        (
            "From Paris to Rome",
            form(origin=STRING, destination=STRING),
            {"origin": "Paris", "destination": "Rome"},
        ),
        ("I feel sad", form(mood={"enum": ["happy", "sad"]}), {"mood": "sad"}),
        ("sum 1, 2 and 3", form(numbers={"type": "array", "items": INTEGER}), {"numbers": [1, 2, 3]}),
        ("at 500 degrees", form(celsius={"type": "number", "maximum": 100}), {"celsius": 1}),
        ("write to ada@example.org", form(email={**STRING, "format": "email"}), {"email": "ada@example.org"}),
        ("on 2026-03-04", form(day={**STRING, "format": "date"}), {"day": "2026-03-04"}),
        ("what is 2+3?", form(answer=STRING), {"answer": "2+3 is 5."}),
        ("order AB-123", form(code={**STRING, "pattern": "^[A-Z]{2}-\\d{3}$"}), {"code": "AB-123"}),
        ("order it", form(code={**STRING, "pattern": "^[A-Z]{2}-\\d{3}$"}), {"code": "AA-000"}),
    ],
)
def test_the_words_of_the_user_are_in_the_json(text: str, schema: Any, value: Any) -> None:
    assert json.loads(say(text, response_format=to_schema(schema))) == value


NODE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": form(
            value=STRING,
            next={"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]},
            children={"type": "array", "items": {"$ref": "#/$defs/Node"}},
        )
    },
}
HARD: dict[str, Any] = {
    "recursive": NODE,
    "oneOf that excludes": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 10}, STRING]},
    "allOf with bounds": {"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"multipleOf": 2}]},
    "allOf of objects": {"allOf": [form(a=STRING) | {"additionalProperties": True}, {"required": ["b"]}]},
    "const": form(kind={"const": "dog"}, legs={"const": 4}),
    "tagged union": {"anyOf": [form(kind={"const": "cat"}, lives=INTEGER), form(kind={"const": "dog"})]},
    "nullable": form(a={"type": ["string", "null"]}, b={"anyOf": [{"type": "null"}, INTEGER]}),
    "enum of many types": {"enum": [None, 3, "x"]},
    "unique items": {"type": "array", "items": {"type": "integer"}, "minItems": 4, "uniqueItems": True},
    "unique enum": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "uniqueItems": True},
    "tuple": {"type": "array", "prefixItems": [STRING, INTEGER], "items": False, "minItems": 2},
    "free object": {"type": "object", "additionalProperties": INTEGER, "minProperties": 2},
    "map": {"type": "object", "properties": {}, "additionalProperties": {"type": "array", "items": STRING}},
    "exclusive": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
    "exclusive integers": {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 6},
    "lengths": form(a={**STRING, "minLength": 30}, b={**STRING, "maxLength": 2}),
    "formats": form(
        **{
            kind.replace("-", "_"): {**STRING, "format": kind}
            for kind in ("date", "date-time", "time", "duration", "email", "uri", "uuid", "ipv4", "ipv6", "hostname")
        }
    ),
    "no type": {"properties": {"a": {"minimum": 3}, "b": {"items": {}}, "c": {"pattern": "^x+$"}}, "required": ["a"]},
    "anything": {},
    "true": True,
    "definitions": {"definitions": {"a/b": INTEGER}, **form(x={"$ref": "#/definitions/a~1b"})},
    "reference to a property": form(a=INTEGER, b={"$ref": "#/properties/a"}),
}


@pytest.mark.parametrize("text", [TEXT, "hello", ""], ids=["telling", "short", "empty"])
@pytest.mark.parametrize("schema", HARD.values(), ids=HARD.keys())
def test_a_hard_schema_is_kept(schema: Any, text: str) -> None:
    value = json.loads(say(text, response_format=to_schema(schema)))
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(value)


def test_json_object_is_an_object_with_the_answer() -> None:
    assert json.loads(say("say hi", response_format={"type": "json_object"})) == {"answer": "hi"}


def test_after_tools_the_json_speaks_of_their_results() -> None:
    asked = ask("what is the weather in Paris?", WEATHER_TOOL)
    messages = [{"role": "user", "content": "weather in Paris"}, *with_results(asked, "21 degrees")]
    told = say("", WEATHER_TOOL, messages=messages, response_format=to_schema(form(city=STRING, degrees=INTEGER)))
    assert json.loads(told) == {"city": "Paris", "degrees": 21}


@pytest.mark.parametrize("schema", [form(age=INTEGER), INTEGER, {"type": "string"}], ids=["object", "number", "string"])
def test_bad_json_is_no_json(schema: Any) -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(say("[[demo: bad json]] Ada is 36", response_format=to_schema(schema)))


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.tuples(st.integers(-50, 50), st.integers(0, 60))
    sizes = st.tuples(st.integers(0, 12), st.integers(0, 12))
    return st.one_of(
        bounds.map(lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1]}),
        bounds.map(lambda b: {"type": "integer", "exclusiveMinimum": b[0], "exclusiveMaximum": b[0] + b[1] + 2}),
        bounds.map(
            lambda b: {"type": "number", "exclusiveMinimum": b[0] / 8, "exclusiveMaximum": (b[0] + b[1] + 1) / 8}
        ),
        st.tuples(st.integers(-50, 50), st.integers(1, 9)).map(
            lambda b: {"type": "integer", "minimum": b[0], "maximum": b[0] + b[1], "multipleOf": b[1]}
        ),
        st.sampled_from([0.5, 0.25, 0.01, 3]).map(lambda step: {"type": "number", "multipleOf": step, "minimum": 2}),
        sizes.map(lambda b: {"type": "string", "minLength": b[0], "maxLength": b[0] + b[1]}),
        st.sampled_from(["date", "date-time", "email", "uri", "uuid"]).map(
            lambda kind: {"type": "string", "format": kind}
        ),
        st.sampled_from([r"^\d{3}-[a-z]+$", r"^(ab|cd)*x?$", r"[A-F]{2,}"]).map(
            lambda p: {"type": "string", "pattern": p}
        ),
        st.lists(st.one_of(st.integers(), st.text(max_size=5), st.booleans(), st.none()), min_size=1, max_size=4).map(
            lambda options: {"enum": options}
        ),
        st.one_of(st.integers(), st.text(max_size=5), st.none()).map(lambda value: {"const": value}),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["string", "null"]}, {}]),
    )


def compounds(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    names = st.sampled_from(["name", "age", "city", "answer", "x", "when", "email"])

    def make_object(given: tuple[dict[str, Any], list[bool], bool]) -> dict[str, Any]:
        properties, needed, closed = given
        required = [name for name, need in zip(properties, needed, strict=False) if need]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": not closed}

    objects = st.tuples(
        st.dictionaries(names, inner, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4), st.booleans()
    ).map(make_object)
    arrays = st.tuples(inner, st.integers(0, 3), st.integers(0, 3)).map(
        lambda given: {"type": "array", "items": given[0], "minItems": given[1], "maxItems": given[1] + given[2]}
    )
    tagged = st.lists(inner, min_size=1, max_size=3).map(
        lambda schemas: {"oneOf": [form(kind={"const": at}, value=schema) for at, schema in enumerate(schemas)]}
    )
    extended = st.tuples(inner, inner).map(
        lambda pair: {
            "allOf": [{"required": ["left"], "properties": {"left": pair[0]}}, {"properties": {"right": pair[1]}}]
        }
    )
    return st.one_of(
        objects, arrays, tagged, extended, st.lists(inner, min_size=1, max_size=3).map(lambda a: {"anyOf": a})
    )


def with_definitions(given: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
    schema, shared = given
    return {
        "$defs": {
            "Shared": shared,
            "List": form(head=STRING, tail={"anyOf": [{"$ref": "#/$defs/List"}, {"type": "null"}]}),
        },
        **form(it=schema, shared={"$ref": "#/$defs/Shared"}, list={"$ref": "#/$defs/List"}),
    }


SCHEMAS = st.recursive(scalars(), compounds, max_leaves=8)


@given(
    st.tuples(SCHEMAS, scalars()).map(with_definitions), st.sampled_from([TEXT, "", "9 cats in Rome"]), st.booleans()
)
@settings(max_examples=400, deadline=None)
def test_every_sample_of_the_supported_kind_is_valid(schema: dict[str, Any], text: str, full: bool) -> None:
    value = sample(schema, lambda: Supply(read_words(text), "said"), full=full)
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(value)


@given(SCHEMAS, SCHEMAS)
@settings(max_examples=100, deadline=None)
def test_the_same_schema_gets_the_same_sample(schema: dict[str, Any], other: dict[str, Any]) -> None:
    first = sample(schema, lambda: Supply(read_words(TEXT)))
    sample(other)
    assert sample(schema, lambda: Supply(read_words(TEXT))) == first
