"""Where two values differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.hooks.changes import MOST, find_changes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("before", "after", "places"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["a"]),
        ({"a": 1}, {"a": True}, ["a"]),
        ({"a": 1}, {"a": 1.0}, ["a"]),
        ({"a": None}, {}, ["a"]),
        ({}, {"a": None}, ["a"]),
        ({"a": {"b": [1, {"c": "x"}]}}, {"a": {"b": [1, {"c": "y"}]}}, ["a.b[1].c"]),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": 1, "b": 2}, {"a": 2, "b": 3}, ["a", "b"]),
    ],
)
def test_each_place_is_named(before: Any, after: Any, places: list[str]) -> None:
    assert find_changes(before, after) == places


def test_places_stand_below_what_they_belong_to() -> None:
    assert find_changes({"a": 1}, {"a": 2}, "upstream") == ["upstream.a"]


def test_of_many_only_so_many_are_told() -> None:
    assert len(find_changes({str(n): n for n in range(99)}, {})) == MOST


@given(JSON, JSON)
def test_no_place_means_that_nothing_was_changed(one: Any, other: Any) -> None:
    assert find_changes(one, one) == []
    if not find_changes({"v": one}, {"v": other}):
        assert one == other


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=5), st.text(max_size=3))
def test_what_is_new_is_found(body: dict[str, int], name: str) -> None:
    assert find_changes(body, {**body, name: "new"}) == [name]
