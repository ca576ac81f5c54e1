"""Which headers of a provider's answer go on to the client: those about its rate limits, and no others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from isthmus.scrub import Scrubber, header_secrets
from isthmus.upstream.rate_limits import MAX_HEADERS, MAX_VALUE, rate_limits

NOBODY = Scrubber(())
OPENAI = {
    f"x-ratelimit-{what}-{of}": value
    for of in ("requests", "tokens")
    for what, value in (("limit", "5000"), ("remaining", "4999"), ("reset", "12ms"))
}


def test_openais_six_are_passed_on_as_they_are() -> None:
    others = {"openai-model": "gpt-5", "openai-organization": "o", "x-request-id": "r", "set-cookie": "a=b"}
    assert rate_limits({**others, **OPENAI}, NOBODY) == OPENAI


def test_names_are_told_in_lower_case() -> None:
    found = rate_limits(CIMultiDict({"X-RateLimit-Limit-Req-Minute": " 60 "}), NOBODY)
    assert found == {"x-ratelimit-limit-req-minute": "60"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x-ratelimit", "1"),
        ("x-ratelimit-", "1"),
        ("x-ratelimit-a_b", "1"),
        ("x-ratelimit-a:b", "1"),
        ("x-ratelimit-" + "a" * 60, "1"),
        ("x-ratelimit-a", ""),
        ("x-ratelimit-a", "1\r\nset-cookie: x"),
        ("x-ratelimit-a", "é"),
        ("x-ratelimit-a", "1" * (MAX_VALUE + 1)),
    ],
)
def test_what_does_not_belong_into_a_head_stays_behind(name: str, value: str) -> None:
    assert rate_limits({name: value, "x-ratelimit-ok": "1"}, NOBODY) == {"x-ratelimit-ok": "1"}


def test_there_are_never_more_than_a_few() -> None:
    assert len(rate_limits({f"x-ratelimit-{n}": "1" for n in range(100)}, NOBODY)) == MAX_HEADERS


def test_a_key_in_a_value_is_not_told() -> None:
    scrubber = Scrubber(tuple(header_secrets({"authorization": "Bearer sk-secret-0123456789"})))
    assert "sk-secret" not in rate_limits({"x-ratelimit-a": "for sk-secret-0123456789"}, scrubber)["x-ratelimit-a"]


@given(st.dictionaries(st.text(), st.text()))
def test_whatever_a_provider_sends_ours_can_be_sent(headers: dict[str, str]) -> None:
    for name, value in rate_limits(headers, NOBODY).items():
        assert name.startswith("x-ratelimit-")
        assert (name + value).isascii()
        assert (name + value).isprintable()
