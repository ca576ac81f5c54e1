"""Gaps in data are filled, choices are made, and what has no value is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.tools.template import fill_template

OPTIONS = {"word": "otters", "size": "high", "many": ["a", "b"], "none": None}


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ({"q": "{word}"}, {"q": "otters"}),
        ({"q": "{none}", "r": 1}, {"r": 1}),
        ({"q": "{many}"}, {"q": ["a", "b"]}),
        ({"deep": {"q": "{word}", "x": "{none}"}}, {"deep": {"q": "otters"}}),
        ({"n": {"{size}": {"high": 5, "*": 3}}}, {"n": 5}),
        ({"n": {"{none}": {"high": 5, "*": 3}}}, {"n": 3}),
        ({"n": {"{none}": {"high": 5}}}, {}),
        ({"plain": "{ not a gap }", "also": "x{word}"}, {"plain": "{ not a gap }", "also": "x{word}"}),
        ({"flag": False, "zero": 0}, {"flag": False, "zero": 0}),
    ],
)
def test_a_template_is_filled(template: dict[str, Any], filled: dict[str, Any]) -> None:
    assert fill_template(template, OPTIONS.get) == filled


_PLAIN = st.one_of(st.booleans(), st.integers(), st.text(alphabet="abc {", max_size=5), st.lists(st.integers()))


@given(st.dictionaries(st.text(alphabet="abc", min_size=1), _PLAIN))
def test_what_has_no_gap_is_sent_as_it_stands(template: dict[str, Any]) -> None:
    def nobody(name: str) -> Any:
        raise AssertionError(f"`{name}` was asked for")

    assert fill_template(template, nobody) == template
