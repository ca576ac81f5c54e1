from __future__ import annotations

import pytest

from isthmus.demo.arithmetic import find_expression, solve


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("what is 12*7?", "12*7"),
        ("What's (1 + 2) / 3", "(1 + 2) / 3"),
        ("calculate -2-3.", "-2-3"),
        ("12", None),
        ("2026-11-15", None),
        ("12 apples * 7", None),
        ("1+" * 200 + "1", None),
    ],
)
def test_a_sum_is_the_whole_text_or_none(text: str, expression: str | None) -> None:
    assert find_expression(text) == expression


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("12*7", "84"),
        ("0.1+0.2", "0.3"),
        ("10/4", "2.5"),
        ("-(2-5)", "3"),
        ("1/0", "undefined, for nothing can be divided by zero"),
        ("9**9", None),
        ("1 +", None),
        (f"{10**20}*{10**20}", None),
        ("1/3", "0.3333333333"),
    ],
)
def test_it_is_solved_exactly_or_not_at_all(expression: str, value: str | None) -> None:
    assert solve(expression) == value
