"""How limits stand, as the headers that OpenAI's clients read. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Standing(NamedTuple):
    what: str
    """`requests` or `tokens`."""
    most: int
    left: int
    reset: float
    """Seconds until nothing of it is used."""


def limit_headers(standings: Iterable[Standing]) -> dict[str, str]:
    """Of several limits on the same thing the one that is met first."""
    tightest: dict[str, Standing] = {}
    for standing in standings:
        known = tightest.get(standing.what)
        if known is None or (standing.left, standing.most) < (known.left, known.most):
            tightest[standing.what] = standing
    headers: dict[str, str] = {}
    for what, standing in sorted(tightest.items()):
        headers[f"x-ratelimit-limit-{what}"] = str(standing.most)
        headers[f"x-ratelimit-remaining-{what}"] = str(standing.left)
        headers[f"x-ratelimit-reset-{what}"] = say_duration(standing.reset)
    return headers


def say_duration(seconds: float) -> str:
    """`6m0s`, `12.5s`, `20ms`: as OpenAI spells it."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 1), 60)
    return f"{int(minutes)}m{rest:g}s" if minutes else f"{rest:g}s"
