"""Numbers as people read them."""

from __future__ import annotations

import time

import pytest

from isthmus.server.ui import words


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "–"), (0, "0"), (999, "999"), (9_999, "9,999"), (12_345, "12.3k"), (1_500_000, "1.5M"), (2e9, "2G")],
)
def test_counts(value: float | None, said: str) -> None:
    assert words.count(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"),
        (0.0004, "0.4 ms"),
        (0.038, "38 ms"),
        (1.239, "1.24 s"),
        (185, "3 min 5 s"),
        (7300, "2 h 1 min"),
    ],
)
def test_seconds(value: float | None, said: str) -> None:
    assert words.seconds(value) == said


@pytest.mark.parametrize(("value", "said"), [(None, "–"), (0, "0 B"), (1500, "1.5 kB"), (2_000_000, "2 MB")])
def test_sizes(value: float | None, said: str) -> None:
    assert words.size(value) == said


@pytest.mark.parametrize(
    ("value", "said"), [(None, "–"), (0, "$0"), (0.000123, "$0.00012"), (0.0456, "$0.046"), (12.345, "$12.35")]
)
def test_money(value: float | None, said: str) -> None:
    assert words.money(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"),
        ([], "–"),
        (True, "yes"),
        (False, "no"),
        ("x", "x"),
        (["a", "b"], "a, b"),
        (2.0, "2"),
        (0.5, "0.5"),
        ({"a": 1}, '{"a": 1}'),
    ],
)
def test_facts(value: object, said: str) -> None:
    assert words.fact(value) == said


def test_moments() -> None:
    now = time.time()
    assert words.ago(None) == "never"
    assert words.ago(now) == "just now"
    assert words.ago(now - 30) == "30 s ago"
    assert words.ago(now - 7200) == "2 h ago"
    assert words.moment(0) == "1970-01-01T00:00:00Z"
    assert words.clock(0) == "01 Jan 00:00"
    assert words.clock(now).count(":") == 2
