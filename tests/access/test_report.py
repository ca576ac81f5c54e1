"""Questions about what was used, and their answers for people and spreadsheets."""

from __future__ import annotations

import csv
from io import StringIO

import pytest

from isthmus.access.report import DEFAULT_BY, Question, as_csv, read_question, row_of, total_of
from isthmus.errors import RequestRefused
from isthmus.ports.spending import Use

NOON = 1_794_916_800.0


@pytest.mark.parametrize(
    ("asked", "question"),
    [
        ({}, Question("2026-10-19", "2026-11-17")),
        ({"since": "2026-11-01", "until": "2026-11-03"}, Question("2026-11-01", "2026-11-03")),
        ({"since": "0d"}, Question("2026-11-17", "2026-11-17")),
        ({"since": "7d", "until": "1d", "by": "day, team"}, Question("2026-11-10", "2026-11-16", ("day", "team"))),
        ({"by": ""}, Question("2026-10-19", "2026-11-17", ())),
        ({"key": "key_a", "team": ""}, Question("2026-10-19", "2026-11-17", DEFAULT_BY, key="key_a")),
    ],
)
def test_what_is_asked_is_read(asked: dict[str, str], question: Question) -> None:
    assert read_question(asked, NOON) == question


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"since": "yesterday"}, "since"),
        ({"until": "2026-13-01"}, "until"),
        ({"since": "2026-11-18"}, "since"),
        ({"since": "1999-01-01"}, "since"),
        ({"by": "day,colour"}, "by"),
    ],
)
def test_what_cannot_be_asked_names_its_field(asked: dict[str, str], param: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        read_question(asked, NOON)
    assert caught.value.param == param


def test_a_spreadsheet_gets_text_and_no_formula() -> None:
    uses = [Use("2026-11-17", "o", "key_a", "", "p", "=HYPERLINK(1)", 2, 10, 1, 5, 1_500_000_001, 1)]
    (row,) = csv.DictReader(StringIO(as_csv(uses, DEFAULT_BY)))
    assert row == {
        "day": "2026-11-17",
        "key": "key_a",
        "provider": "p",
        "model": "'=HYPERLINK(1)",
        "requests": "2",
        "input_tokens": "10",
        "cached_tokens": "1",
        "output_tokens": "5",
        "cost": "1.500000001",
        "unpriced_requests": "1",
    }
    assert as_csv([], ("day",)).splitlines() == [
        "day,requests,input_tokens,cached_tokens,output_tokens,cost,unpriced_requests"
    ]


def test_rows_have_what_they_are_told_apart_by_and_a_total_has_nothing() -> None:
    uses = [Use("2026-11-17", "o", "k", "t", "p", "m", 1, 2, 1, 3, 10), Use("2026-11-18", "o", "k", "t", "p", "m", 1)]
    assert list(row_of(uses[0], ("team", "day")))[:2] == ["day", "team"]
    assert total_of(uses) == Use("", "", "", "", "", "", 2, 2, 1, 3, 10)
