"""What we write, any TOML parser reads back as the same value."""

from __future__ import annotations

import math
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.values.toml_text import toml_key, toml_value

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_VALUES = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(_TEXT, _VALUES)
def test_it_is_read_back_equal_on_one_line(key: str, value: Any) -> None:
    line = f"{toml_key(key)} = {toml_value(value)}"
    assert "\n" not in line
    assert tomllib.loads(line) == {key: value}


def test_numbers_that_are_none_are_toml_too() -> None:
    assert math.isnan(tomllib.loads(f"x = {toml_value(math.nan)}")["x"])
    assert tomllib.loads(f"x = {toml_value(-math.inf)}")["x"] == -math.inf


@pytest.mark.parametrize("value", [None, 1j, b"x", [None], {"a": None}], ids=repr)
def test_what_toml_cannot_hold_is_refused_and_not_spelled_out(value: object) -> None:
    with pytest.raises(ValueError, match="cannot be written as TOML"):
        toml_value(value)
