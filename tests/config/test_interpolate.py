"""References to the environment inside texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.config.interpolate import interpolate

ENVIRON = {"KEY": "secret", "EMPTY": "", "NESTED": "${KEY}"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("${KEY}", "secret", id="whole"),
        pytest.param("a-${KEY}-${KEY}", "a-secret-secret", id="inside, twice"),
        pytest.param("${KEY:-other}", "secret", id="default not needed"),
        pytest.param("${NONE:-other}", "other", id="default for unset"),
        pytest.param("${EMPTY:-other}", "other", id="default for empty"),
        pytest.param("${EMPTY}", "", id="set but empty"),
        pytest.param("${NONE:-}", "", id="empty default"),
        pytest.param("${NONE:-http://h:1/v1}", "http://h:1/v1", id="default with colons"),
        pytest.param("$${KEY}", "${KEY}", id="escaped"),
        pytest.param("${NESTED}", "${KEY}", id="values are not read again"),
        pytest.param("$KEY costs 5$", "$KEY costs 5$", id="a dollar alone is a dollar"),
    ],
)
def test_a_reference_is_replaced(text: str, value: str) -> None:
    done = interpolate({"a": text, "list": [text], "table": {"b": text}, "tables": [{"c": text}]}, ENVIRON)
    assert done.problems == ()
    assert done.values == {"a": value, "list": [value], "table": {"b": value}, "tables": [{"c": value}]}


def test_an_unset_variable_names_itself_the_key_and_the_fix() -> None:
    done = interpolate({"providers": {"x": {"api_key": "${NONE}", "headers": {"A": "${KEY} ${GONE}"}}}}, ENVIRON)
    assert [problem.text for problem in done.problems] == [
        "`providers.x.api_key` refers to `${NONE}`, which is not set in the environment. "
        "Fix: set it (`export NONE=…`), or write `${NONE:-}` where it may be empty",
        "`providers.x.headers.A` refers to `${GONE}`, which is not set in the environment. "
        "Fix: set it (`export GONE=…`), or write `${GONE:-}` where it may be empty",
    ]


@pytest.mark.parametrize("text", ["${}", "${A B}", "${1A}", "${KEY", "${KEY-x}"])
def test_a_broken_reference_is_a_problem(text: str) -> None:
    (problem,) = interpolate({"a": text}, ENVIRON).problems
    assert "is not a reference" in problem.text


def test_what_was_written_is_kept_for_showing() -> None:
    done = interpolate({"a": "${KEY}", "b": "plain", "c": ["x", "${KEY}"], "d": {"e": "${KEY}"}}, ENVIRON)
    assert done.written[("a",)] == "${KEY}"
    assert done.written[("c",)] == ["x", "${KEY}"]
    assert done.written[("d", "e")] == "${KEY}"
    assert ("b",) not in done.written


_VALUES = st.recursive(
    st.booleans() | st.integers() | st.text("ab ${}:-", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", max_size=3), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text("xyz", max_size=3), _VALUES, max_size=3))
def test_values_without_references_stay_as_they_are(values: dict[str, Any]) -> None:
    done = interpolate(values, {})
    if not done.written:
        assert done.values == values
        assert done.problems == ()
