"""Texts that may be JSON, objects without their nulls, fragments that become one body."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.protocol.json import contains, deep_merge, is_json, nest, without_nulls


def test_fields_that_are_null_go_and_nothing_else() -> None:
    fields = {"a": None, "b": 0, "c": "", "d": {"e": None}}
    assert without_nulls(fields) == {"b": 0, "c": "", "d": {"e": None}}
    assert "a" in fields


def test_an_object_without_nulls_is_not_copied() -> None:
    fields = {"b": 0}
    assert without_nulls(fields) is fields


@pytest.mark.parametrize("text", ["{}", ' {"a": "}"} ', "[1]", '"a"', "1", "true", "null", '{"a": 1}\n'])
def test_json_is_json(text: str) -> None:
    assert is_json(text)


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"a": "}', "[1", '"a', "ls -l", "{}}", "{}{}", "[" * 20_000, '{"a":' * 9999]
)
def test_anything_else_is_not_and_never_raises(text: str) -> None:
    assert not is_json(text)


OBJECTS = st.recursive(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner | st.integers(0, 3), max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("fragments", "merged"),
    [
        pytest.param([], {}, id="nothing"),
        pytest.param([{"a": 1}, {"b": 2}], {"a": 1, "b": 2}, id="side by side"),
        pytest.param([{"a": 1}, {"a": 2}], {"a": 2}, id="the later wins"),
        pytest.param(
            [{"t": {"type": "on"}}, {"t": {"keep": True}}], {"t": {"type": "on", "keep": True}}, id="objects merge"
        ),
        pytest.param([{"t": {"x": 1}}, {"t": 3}], {"t": 3}, id="an object gives way to a value"),
        pytest.param([{"t": 3}, {"t": {"x": 1}}], {"t": {"x": 1}}, id="a value gives way to an object"),
        pytest.param([{"t": [1]}, {"t": [2]}], {"t": [2]}, id="lists are values"),
    ],
)
def test_fragments_merge_into_one_body(fragments: list[dict[str, Any]], merged: dict[str, Any]) -> None:
    assert deep_merge(*fragments) == merged


@pytest.mark.parametrize(
    ("path", "fragment"), [("a", {"a": 1}), ("a.b", {"a": {"b": 1}}), ("a.b.c", {"a": {"b": {"c": 1}}})]
)
def test_a_dotted_path_becomes_a_nested_object(path: str, fragment: dict[str, Any]) -> None:
    assert nest(path, 1) == fragment


@given(OBJECTS, OBJECTS)
@settings(max_examples=200, deadline=None)
def test_merging_keeps_all_of_the_later_fragment_and_shares_nothing(one: dict[str, Any], two: dict[str, Any]) -> None:
    before = (repr(one), repr(two))
    merged = deep_merge(one, two)
    assert contains(merged, two)
    for value in merged.values():
        if isinstance(value, dict):
            value["changed"] = True
    assert (repr(one), repr(two)) == before


def test_contains_looks_into_objects() -> None:
    body = {"thinking": {"type": "enabled", "keep": True}}
    assert contains(body, {"thinking": {"type": "enabled"}})
    assert not contains(body, {"thinking": {"type": "disabled"}})
    assert not contains(body, {"thinking": {"other": 1}})
    assert not contains({"thinking": 1}, {"thinking": {"type": "enabled"}})
