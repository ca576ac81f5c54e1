"""Rate limits as Anthropic's clients read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.access.standing import say_duration
from isthmus.server.rate_limits import as_anthropic, read_duration

NOON = 1_794_916_800.0


def test_each_is_told_under_its_name_and_a_time_that_is_left_as_its_end() -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"x-ratelimit-limit-requests", b"60"),
        (b"x-ratelimit-remaining-tokens", b"7"),
        (b"x-ratelimit-reset-requests", b"1m2s"),
        (b"x-ratelimit-reset-tokens", b"soon"),
        (b"x-ratelimit-limit-tokens-weekly", b"9"),
    ]
    assert as_anthropic(headers, NOON) == [
        (b"anthropic-ratelimit-requests-limit", b"60"),
        (b"anthropic-ratelimit-tokens-remaining", b"7"),
        (b"anthropic-ratelimit-requests-reset", b"2026-11-17T12:01:02Z"),
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(b"6m0s", 360), (b"12.5s", 12.5), (b"20ms", 0.02), (b"1h2m3s", 3723), (b"", None), (b"12", None), (b"x1s", None)],
)
def test_a_time_is_read_as_openai_spells_it(text: bytes, seconds: float | None) -> None:
    assert read_duration(text) == (None if seconds is None else pytest.approx(seconds))


@given(st.floats(0, 200))
def test_what_we_spell_is_read_as_it_was_meant(seconds: float) -> None:
    assert read_duration(say_duration(seconds).encode()) == pytest.approx(seconds, abs=0.06)
