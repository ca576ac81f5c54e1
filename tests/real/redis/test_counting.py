"""What a real Redis counts: exact for all who share it, and free again when they die."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from isthmus.access.limiter import Limiter
from isthmus.access.redis import CountersInRedis, RedisPlaces, _Within
from isthmus.access.rules import Rule
from isthmus.errors import RequestRefused
from isthmus.ports.keys import Rates
from real.redis.conftest import Redis
from waiting import until_soon

pytestmark = pytest.mark.real


def rule(**rates: int) -> list[Rule]:
    return [Rule("key:a", "`a`", Rates(**rates))]


def limiter(redis: Redis, **options: Any) -> Limiter:
    return Limiter(CountersInRedis(redis.url, timeout=10.0, **options))


async def test_several_who_share_it_get_exactly_what_there_is_together(redis: Redis) -> None:
    houses = [limiter(redis) for _ in range(3)]

    async def ask(number: int) -> bool:
        try:
            await houses[number % 3].take(rule(requests_per_minute=100), id=str(number), tokens=0, streams=False)
        except RequestRefused:
            return False
        return True

    given: list[bool] = []
    for start in range(0, 320, 64):
        given += await asyncio.gather(*map(ask, range(start, start + 64)))
    assert given.count(True) == 100
    for house in houses:
        assert house.failures == 0
        await house.aclose()


async def test_tokens_are_put_right_for_everybody(redis: Redis) -> None:
    one, two = limiter(redis), limiter(redis)
    mine = rule(tokens_per_minute=1000)
    taken = await one.take(mine, id="r1", tokens=900, streams=False)
    with pytest.raises(RequestRefused, match="900 are used"):
        await two.take(mine, id="r2", tokens=200, streams=False)
    await one.end(taken, 10)
    assert (await two.take(mine, id="r2", tokens=200, streams=False)).headers["x-ratelimit-remaining-tokens"] == "790"
    for each in (one, two):
        await each.aclose()


async def test_places_are_shared_and_given_back(redis: Redis) -> None:
    one, two = limiter(redis), limiter(redis)
    mine = rule(concurrent_requests=2)
    first = await one.take(mine, id="r1", tokens=0, streams=False)
    await two.take(mine, id="r2", tokens=0, streams=False)
    with pytest.raises(RequestRefused, match="2 requests at the same time"):
        await two.take(mine, id="r3", tokens=0, streams=False)
    await one.end(first, 0)
    await two.take(mine, id="r3", tokens=0, streams=False)
    for each in (one, two):
        await each.aclose()


LEASE = 3.0
DIES = """
import asyncio, os, sys
from isthmus.access.redis import CountersInRedis, RedisPlaces, _Within
async def go():
    counters = CountersInRedis(sys.argv[1], timeout=10.0)
    places = RedisPlaces(counters._client, _Within(10.0), "isthmus", lease=3.0)
    assert await places.enter("key:a", "dead", 1)
    os._exit(9)
asyncio.run(go())
"""


def test_a_process_that_dies_gives_its_place_back_and_one_that_lives_keeps_it(redis: Redis) -> None:
    assert subprocess.run([sys.executable, "-c", DIES, redis.url]).returncode == 9
    asyncio.run(_after_a_death(redis))


async def _after_a_death(redis: Redis) -> None:
    counters = CountersInRedis(redis.url, timeout=10.0)
    mine = RedisPlaces(counters._client, _Within(10.0), "isthmus", lease=LEASE)
    got: list[bool] = []

    async def try_again() -> None:
        while not got:
            if await mine.enter("key:a", "mine", 1):
                got.append(True)

    trying = asyncio.create_task(try_again())
    await until_soon(lambda: bool(got))
    await trying
    began = await counters._client.time()
    while (await counters._client.time())[0] < began[0] + 2 * LEASE:  # and said in between that it is there
        await mine.stay()
        assert not await mine.enter("key:a", "another", 1)
    await mine.leave("key:a", "mine")
    assert await mine.enter("key:a", "another", 1)
    await mine.aclose()
    await counters.aclose()


async def test_when_it_goes_each_counts_alone_and_when_it_is_back_together(redis: Redis) -> None:
    at = [0.0]
    house = limiter(redis, now=lambda: at[0])
    mine = rule(requests_per_minute=3)
    await house.take(mine, id="r1", tokens=0, streams=False)
    redis.stop()
    taken = await house.take(mine, id="r2", tokens=0, streams=False)
    assert house.failures == 1
    assert taken.headers["x-ratelimit-remaining-requests"] == "2", "alone, from the beginning"
    redis.start()
    at[0] += 1.0
    taken = await house.take(mine, id="r3", tokens=0, streams=False)
    assert house.failures == 1
    assert taken.headers["x-ratelimit-remaining-requests"] == "2", "it had nothing to keep"
    await house.aclose()
