"""Mistakes in `[limits]` and `[teams]`, as far as they concern how much callers may have."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Final
from urllib.parse import urlsplit

from isthmus.config.schema import Config
from isthmus.config.schema_limits import RateLimits
from isthmus.values.problems import Problem

_SCHEMES: Final = ("redis", "rediss", "unix")


def check_limits(config: Config) -> Iterator[Problem]:
    at, limits = ("limits", "redis"), config.limits
    if limits.redis and urlsplit(limits.redis).scheme not in _SCHEMES:
        yield Problem(at, "is no address of a Redis", "write `redis://HOST:6379/0`, `rediss://…` or `unix://…`")
    elif limits.redis and find_spec("redis") is None:
        yield Problem(at, "needs packages that are not installed", "install `isthmus[redis]`")
    workers, given = config.server.workers, (limits, *limits.models.values(), *config.teams.values())
    if workers > 1 and not limits.redis and any(map(_limits, given)):
        words = f"is empty, so that each of the {workers} workers counts limits alone"
        yield Problem(
            at, f"{words}, and callers get up to {workers} times as much", "name a Redis that they share", "warning"
        )
    for name, team in config.teams.items():
        for provider in team.upstream_keys:
            if provider not in config.providers:
                known = ", ".join(f"`{each}`" for each in config.providers) or "none"
                where = ("teams", name, "upstream_keys", provider)
                yield Problem(where, "is for a provider that is not configured", f"use one of these: {known}")


def _limits(rates: RateLimits) -> bool:
    return any(
        (rates.requests_per_minute, rates.tokens_per_minute, rates.concurrent_requests, rates.concurrent_streams)
    )
