"""Query strings, read strictly."""

from __future__ import annotations

import pytest

from isthmus.errors import RequestRefused
from isthmus.server.options import query, whole_number


def test_a_query_is_names_and_values() -> None:
    assert query({"query_string": b"a=1&b=&c=x%20y"}) == {"a": "1", "b": "", "c": "x y"}
    assert query({"query_string": b""}) == {}


def test_the_last_of_several_counts() -> None:
    assert query({"query_string": b"a=1&a=2"}) == {"a": "2"}


def test_more_than_anybody_needs_is_refused() -> None:
    with pytest.raises(RequestRefused, match="query string"):
        query({"query_string": b"&".join(b"a=1" for _ in range(51))})


@pytest.mark.parametrize(("given", "number"), [({}, 20), ({"limit": "1"}, 1), ({"limit": "100"}, 100)])
def test_a_whole_number_within_its_bounds(given: dict[str, str], number: int) -> None:
    assert whole_number(given, "limit", default=20, low=1, high=100) == number


@pytest.mark.parametrize("given", ["0", "101", "-1", "1.5", "", "x", "٣", "1" * 30])
def test_anything_else_is_refused_by_name(given: str) -> None:
    with pytest.raises(RequestRefused, match="from 1 to 100") as refused:
        whole_number({"limit": given}, "limit", default=20, low=1, high=100)
    assert refused.value.param == "limit"


def test_there_may_be_no_highest_one() -> None:
    assert whole_number({"after": "123456789"}, "after", default=0, low=0) == 123456789
    with pytest.raises(RequestRefused, match="at least 0"):
        whole_number({"after": "-1"}, "after", default=0, low=0)
