"""Durations and sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.values.quantities import parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30.0),
        ("30s", 30.0),
        ("1.5s", 1.5),
        ("250ms", 0.25),
        ("5m", 300.0),
        ("5 min", 300.0),
        ("1h30m", 5400.0),
        ("2d", 172800.0),
        (" 1H ", 3600.0),
        ("0", 0.0),
        ("1_000", 1000.0),
    ],
)
def test_a_duration_is_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1048576", 1048576),
        ("10MB", 10_000_000),
        ("10 mb", 10_000_000),
        ("10MiB", 10 * 2**20),
        ("1.5GiB", 3 * 2**29),
        ("2k", 2000),
        ("1_000", 1000),
        ("7B", 7),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_a_size_is_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "s", "3x", "-5s", "5m3", "1h x", "1e5", "nan", "inf", "٣s", "9" * 400])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|endless"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["", "MB", "10XB", "-1", "1.2.3", "10 M B", "9" * 400 + ".0"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|endless"):
        parse_size(text)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 59), st.integers(0, 59))
def test_parts_of_a_duration_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    for parse in (parse_duration, parse_size):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert value >= 0
