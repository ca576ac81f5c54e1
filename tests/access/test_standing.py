"""How limits stand, as headers."""

from __future__ import annotations

import pytest

from isthmus.access.standing import Standing, limit_headers, say_duration


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0ms"), (0.02, "20ms"), (1, "1s"), (12.54, "12.5s"), (60, "1m0s"), (61.5, "1m1.5s"), (360, "6m0s")],
)
def test_a_time_is_spelt_as_openai_spells_it(seconds: float, said: str) -> None:
    assert say_duration(seconds) == said


def test_of_several_limits_the_one_that_is_met_first_is_told() -> None:
    told = limit_headers(
        [Standing("requests", 60, 10, 30.0), Standing("requests", 600, 3, 59.0), Standing("tokens", 1000, 0, 0.5)]
    )
    assert told == {
        "x-ratelimit-limit-requests": "600",
        "x-ratelimit-remaining-requests": "3",
        "x-ratelimit-reset-requests": "59s",
        "x-ratelimit-limit-tokens": "1000",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "500ms",
    }
    assert limit_headers([]) == {}
