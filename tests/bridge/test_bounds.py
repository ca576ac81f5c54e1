"""How large a schema may be: every limit refuses by name, and real schemas pass."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds, check_bounds
from isthmus.bridge.contract.validators import read_schema
from isthmus.bridge.types.plan import Host
from isthmus.errors import RequestRefused
from isthmus.testing.fold import plan_for

PARAM = "text.format.schema"


def doubling(levels: int, keyword: str = "allOf", refer: str = "$ref") -> dict[str, Any]:
    """Each definition refers twice to the one before."""
    made: dict[str, Any] = {"d0": {"type": "object"}}
    for level in range(1, levels + 1):
        made[f"d{level}"] = {keyword: [{refer: f"#/$defs/d{level - 1}"}] * 2}
    return {refer: f"#/$defs/d{levels}", "$defs": made}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"properties": {"a": schema}}
    return schema


def patterned(count: int) -> dict[str, Any]:
    return {"properties": {f"p{at}": {"pattern": f"^a{{{at}}}$"} for at in range(count)}}


BEYOND: dict[str, tuple[dict[str, Any], Bounds]] = {
    "max_schema": ({"description": "x" * 1000}, Bounds(max_schema=999)),
    "max_nodes": ({"enum": [[] for _ in range(100)]}, Bounds(max_nodes=100)),
    "max_depth": (nested(10), Bounds(max_depth=20)),
    "max_expanded": (doubling(10), Bounds(max_expanded=2000)),
    "max_patterns": (patterned(11), Bounds(max_patterns=10)),
    "max_pattern": ({"pattern": "a" * 101}, Bounds(max_pattern=100)),
    "max_pattern_total": ({"patternProperties": {"a" * 60: {}, "b" * 60: {}}}, Bounds(max_pattern_total=100)),
}


@pytest.mark.parametrize("setting", BEYOND)
def test_every_limit_refuses_by_name_where_the_request_is_planned(setting: str) -> None:
    schema, bounds = BEYOND[setting]
    body = {"text": {"format": {"type": "json_schema", "name": "s", "schema": schema}}}
    plan_for(body)
    with pytest.raises(RequestRefused, match=f"`checks.{setting}`") as refused:
        plan_for(body, host=Host(bounds=bounds))
    assert (refused.value.code, refused.value.param) == ("schema_too_large", PARAM)
    assert f"{getattr(bounds, setting):,}" in refused.value.message


@pytest.mark.parametrize("levels", [28, 40, 5000])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("refer", ["$ref", "$dynamicRef"])
def test_definitions_that_double_each_other_are_counted_not_walked(levels: int, keyword: str, refer: str) -> None:
    with pytest.raises(RequestRefused, match=r"`checks\.max_expanded`"):
        check_bounds(doubling(levels, keyword, refer), DEFAULT_BOUNDS, PARAM)


@pytest.mark.parametrize(
    "spell",
    [
        pytest.param(lambda at: ({"$anchor": f"d{at}"}, f"#d{at}"), id="anchors"),
        pytest.param(lambda at: ({"$id": f"d{at}.json"}, f"d{at}.json"), id="ids"),
        pytest.param(lambda at: ({"$id": f"https://example.com/d{at}.json"}, f"d{at}.json"), id="relative to an id"),
        pytest.param(lambda at: ({}, f"#/%24defs/d{at}"), id="escaped"),
    ],
)
def test_doubling_is_seen_however_it_is_spelled(spell: Any) -> None:
    made: dict[str, Any] = {"d0": {"type": "object", **spell(0)[0]}}
    for level in range(1, 30):
        made[f"d{level}"] = {**spell(level)[0], "allOf": [{"$ref": spell(level - 1)[1]}] * 2}
    with pytest.raises(RequestRefused, match=r"`checks\.max_expanded`"):
        check_bounds({"$ref": spell(29)[1], "$defs": made}, DEFAULT_BOUNDS, PARAM)


def test_doubling_through_lists_and_pointers_into_the_tree_is_seen() -> None:
    schema: dict[str, Any] = {"anyOf": [{"type": "null"}]}
    for level in range(30):
        schema["anyOf"].append({"items": [{"$ref": f"#/anyOf/{level}"}] * 2})
    with pytest.raises(RequestRefused, match=r"`checks\.max_expanded`"):
        check_bounds(schema, DEFAULT_BOUNDS, PARAM)


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param({"$ref": "#"}, id="itself"),
        pytest.param({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a"}, id="a list of itself"),
        pytest.param(
            {
                "$defs": {
                    "a": {"properties": {"b": {"$ref": "#/$defs/b"}, "c": {"$ref": "#/$defs/b"}}},
                    "b": {"properties": {"a": {"$ref": "#/$defs/a"}, "root": {"$ref": "#"}}},
                },
                "$ref": "#/$defs/a",
            },
            id="each other",
        ),
        pytest.param({"properties": {"$ref": {"type": "string"}, "pattern": {"type": "string"}}}, id="named so"),
        pytest.param({"$ref": "#/nowhere"}, id="a dangling one, which the validator refuses"),
        pytest.param(True, id="true"),
    ],
)
def test_recursion_is_allowed(schema: Any) -> None:
    check_bounds(schema, DEFAULT_BOUNDS, PARAM)


def test_a_large_real_schema_passes() -> None:
    """About 200 kB, in the manner of an API description: shared components, each with patterns and choices."""
    components: dict[str, Any] = {}
    for at in range(330):
        shared = [{"$ref": f"#/$defs/c{other}"} for other in range(max(at - 3, 0), at) if other % 8]
        components[f"c{at}"] = {
            "type": "object",
            "description": "One of the things that this interface speaks of, in a sentence or two of plain words. " * 3,
            "properties": {
                "id": {"type": "string", "pattern": "^[0-9a-f]{8}-[0-9a-f]{4}$"},
                "kind": {"enum": [f"kind_{at}_{option}" for option in range(8)]},
                "size": {"type": ["integer", "null"], "minimum": 0},
                "links": {"type": "array", "items": {"anyOf": shared or [{"type": "null"}]}},
            },
            "required": ["id", "kind"],
        }
    schema = {"$defs": components, "type": "object", "properties": {"it": {"$ref": "#/$defs/c7"}}}
    assert len(read_schema(schema)) > 200_000


def test_the_same_pattern_counts_once() -> None:
    check_bounds({"items": [{"pattern": "^a$"} for _ in range(1000)]}, DEFAULT_BOUNDS, PARAM)
