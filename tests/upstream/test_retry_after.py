"""A told wait: either form of the header, and nothing that cannot be slept."""

from __future__ import annotations

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.server.errors import error_headers
from isthmus.upstream.retry_after import parse_retry_after


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("0", 0.0),
        ("99999999", 86_400.0),
        ("1e308", 86_400.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu Jan  1 00:01:40 1970", 90.0),
        ("Thu, 01 Jan 1970 00:00:05 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1_000", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_a_told_wait_is_a_sane_number_or_none(said: str | None, seconds: float | None) -> None:
    assert parse_retry_after(said, now=10.0) == seconds
    if seconds is not None:
        assert UpstreamFailed("x", retry_after=seconds).retry_after == seconds


@pytest.mark.parametrize("wait", [1e308, 99_999_999.0])
def test_no_failure_asks_for_more_than_a_day(wait: float) -> None:
    assert UpstreamFailed("x", retry_after=wait).retry_after == 86_400.0
    assert UpstreamFailed("x", retry_after=-1.0).retry_after is None
    assert UpstreamFailed("x", retry_after=float("nan")).retry_after is None


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_a_time_to_wait_that_is_no_number_is_no_time_to_wait(value: str) -> None:
    seconds = parse_retry_after(value, 0.0)
    assert seconds is None
    assert error_headers(UpstreamFailed("slow down", code="rate_limit_exceeded", retry_after=seconds))
