"""Redis that is away: nobody waits for it for long, and what is done then is the operator's to say. What Redis itself
counts is shown with a real one (`tests/real/redis`)."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from isthmus.access.limiter import Limiter
from isthmus.access.redis import CountersInRedis
from isthmus.access.rules import Rule
from isthmus.errors import ConfigError, RequestRefused
from isthmus.ports.keys import Rates

MINE = [Rule("key:a", "`a`", Rates(requests_per_minute=2, concurrent_requests=1))]


@pytest.fixture(params=["silent", "closed"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """One that takes connections and says nothing; one that nobody listens at."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        if request.param == "closed":
            listening.close()
        yield f"redis://127.0.0.1:{port}/0"


def limiter(address: str, **options: Any) -> Limiter:
    return Limiter(CountersInRedis(address, timeout=0.05, **options))


async def take(limiter: Limiter, id: str = "r1") -> Any:
    async with asyncio.timeout(30):
        return await limiter.take(MINE, id=id, tokens=0, streams=False)


async def test_while_it_is_away_this_process_counts_alone(address: str, caplog: pytest.LogCaptureFixture) -> None:
    at = [0.0]
    counting = limiter(address, now=lambda: at[0])
    with caplog.at_level(logging.ERROR, "isthmus.limits"):
        taken = await take(counting)
        await counting.end(taken, 0)
        await counting.end(await take(counting, "r2"), 0)
        with pytest.raises(RequestRefused, match="2 requests per minute"):
            await take(counting, "r3")
        assert counting.failures == 1, "it is not asked again at once"
        at[0] += 1.0
        with pytest.raises(RequestRefused, match="2 requests per minute"):
            await take(counting, "r3")
        assert counting.failures == 2
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert all("limits.redis_away" in each and "counts alone" in each for each in said)
    await counting.aclose()


async def test_or_nobody_is_let_through(address: str) -> None:
    counting = limiter(address, down="refuse")
    for _ in range(3):
        with pytest.raises(ConfigError, match=r"limits\.redis") as caught:
            await take(counting)
        assert (caught.value.code, caught.value.meaning.status) == ("limits_unavailable", 503)
    await counting.aclose()


async def test_what_was_taken_of_redis_that_is_away_now_is_given_up_quietly(address: str) -> None:
    counting = limiter(address)
    counters: Any = counting._counters
    taken = await take(counting)
    taken.pair = counters._shared
    async with asyncio.timeout(30):
        await counting.end(taken, 0)
        await counting.undo(taken)
    await counting.aclose()


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    with pytest.raises(ConfigError, match=r"isthmus\[redis\]"):
        CountersInRedis("redis://127.0.0.1:1")
