from __future__ import annotations

from typing import Any

import pytest

from isthmus.demo.scalar_sample import sample_number, sample_string
from isthmus.demo.supply import Supply
from isthmus.demo.words import read_words


def _supply(text: str) -> Supply:
    return Supply(read_words(text))


@pytest.mark.parametrize(
    ("schema", "text", "made"),
    [
        ({}, "Ada", "Ada"),
        ({}, "", "field"),
        ({"maxLength": 2}, "Ada", "Ad"),
        ({"maxLength": 0}, "Ada", ""),
        ({"minLength": 5}, "Ada", "Ada.."),
        ({"format": "date"}, "on 2026-03-04.", "2026-03-04"),
        ({"format": "date"}, "soon", "2026-01-31"),
        ({"format": "made-up"}, "Ada", "Ada"),
        ({"pattern": "^A.a$"}, "Ada", "Ada"),
        ({"pattern": "^x+$"}, "Ada", "x"),
        ({"pattern": "(?=x)x"}, "Ada", "Ada"),
    ],
)
def test_a_string_keeps_to_its_schema(schema: dict[str, Any], text: str, made: str) -> None:
    assert sample_string(schema, _supply(text), "field", 0) == made


def test_strings_of_one_list_differ_also_where_they_are_short() -> None:
    assert [sample_string({}, None, "x", nth) for nth in range(3)] == ["x", "x 2", "x 3"]
    assert len({sample_string({"maxLength": 3}, None, "name", nth) for nth in range(3)}) == 3


@pytest.mark.parametrize(
    ("schema", "text", "made"),
    [
        ({}, "", 1),
        ({"minimum": 3}, "", 3),
        ({"maximum": -4}, "", -4),
        ({"minimum": 10}, "2 or 12", 12),
        ({"exclusiveMinimum": 4, "exclusiveMaximum": 6}, "", 5),
        ({"multipleOf": 7, "minimum": 8}, "", 14),
        ({"minimum": 2, "maximum": 2}, "", 2),
        ({"minimum": 5, "maximum": 4}, "", 5),
    ],
)
def test_a_whole_number_keeps_to_its_bounds(schema: dict[str, Any], text: str, made: int) -> None:
    value = sample_number(schema, _supply(text), 0, whole=True)
    assert (value, type(value)) == (made, int)


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0.001), (5.1, 5.2), (-0.25, -0.125), (7, 8)], ids=["tiny", "narrow", "negative", "wide"]
)
def test_a_number_fits_between_exclusive_bounds(low: float, high: float) -> None:
    bounds = {"exclusiveMinimum": low, "exclusiveMaximum": high}
    assert low < sample_number(bounds, None, 0, whole=False) < high


def test_a_single_point_is_found_and_numbers_of_one_list_differ() -> None:
    assert sample_number({"minimum": 0.7, "maximum": 0.7}, None, 0, whole=False) == 0.7
    made = [sample_number({"minimum": 8, "maximum": 10}, None, nth, whole=True) for nth in range(3)]
    assert sorted(made) == [8, 9, 10]
