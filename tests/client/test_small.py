"""The smaller rooms of the client: rates, retries, prices, imports."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from isthmus import (
    RateLimit,
    Retry,
    Usage,
)
from isthmus.bridge.capabilities import Cost
from isthmus.client.limiter import Limiter
from isthmus.errors import RateLimited, UpstreamFailed, UpstreamTimedOut, specify
from own_time import clock, run_in_own_time, turns


def test_usage_and_cost_are_summed_and_listed() -> None:
    total = Usage().plus(Usage(10, 5, 15, cost=0.25, requests=1)).plus(Usage(20, 5, 25, cost=0.5, requests=2))
    assert (total.input_tokens, total.total_tokens, total.cost, total.requests) == (30, 40, 0.75, 3)
    assert [turn.cost for turn in total.turns] == [0.25, 0.5]
    assert Usage().plus(Usage(cost=1.0)).plus(Usage(cost=None)).cost is None


def test_cached_input_has_its_own_price() -> None:
    assert Cost(input=2.0, cached=0.2, output=10.0).price(1_000_000, 0, 500_000) == pytest.approx(1.1)
    assert Cost(input=2.0, output=10.0).price(1_000_000, 100_000, 0) == pytest.approx(3.0)
    assert Cost().price(1, 1, 0) is None


def test_one_who_gives_up_waiting_takes_nothing_along() -> None:
    async def main() -> None:
        clock().stop_clock()
        limiter = Limiter(RateLimit(16.0))
        await limiter.take()
        waiting = asyncio.create_task(limiter.take())
        await turns()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        next_one = asyncio.create_task(limiter.take())
        await turns()
        assert not next_one.done()
        clock().skip(1 / 16)
        await turns()
        assert next_one.done()

    run_in_own_time(main())


@pytest.mark.parametrize(
    ("failure", "attempt", "left", "expected"),
    [
        (RateLimited("", retry_after=3), 1, None, 3),
        (RateLimited("", retry_after=3), 1, 2.0, None),
        (RateLimited("", retry_after=3), 3, None, None),
        (RateLimited("", retry_after=1_000), 1, None, None),
        (UpstreamTimedOut(""), 1, None, 0.5),
        (UpstreamTimedOut(""), 2, None, 1.0),
        (specify(UpstreamFailed("", status=401)), 1, None, None),
    ],
    ids=["told", "too late", "used up", "too long", "first", "doubled", "final"],
)
def test_when_to_try_again(failure: UpstreamFailed, attempt: int, left: float | None, expected: float | None) -> None:
    assert Retry(attempts=3, base=0.5, chance=lambda: 1.0).wait(failure, attempt, left) == expected


IMPORT = """
import resource, sys
def used():
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime
started = used()
import isthmus
imported = used() - started
heavy = [name for name in ("aiohttp", "pydantic", "mcp", "starlette", "uvicorn", "asyncio") if name in sys.modules]
print(imported / started, heavy)
"""


def test_importing_the_package_is_quick_and_pulls_in_nothing_heavy() -> None:
    """Quick: about as much work as starting Python itself, 15 ms; pydantic alone would be ten times that."""
    runs = [subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True) for _ in "123"]
    shares, heavy = zip(*(run.stdout.strip().split(" ", 1) for run in runs), strict=True)
    assert set(heavy) == {"[]"}
    assert min(map(float, shares)) < 6


def test_the_client_itself_loads_neither_pydantic_nor_mcp_before_they_are_needed() -> None:
    names = "isthmus.Bridge, isthmus.tool, isthmus.Limits"
    code = f"import sys, isthmus; {names}; print([one for one in ('pydantic', 'mcp') if one in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    import isthmus

    for name in isthmus.__all__:
        assert getattr(isthmus, name) is not None
    with pytest.raises(AttributeError, match="nothing_of_the_sort"):
        _ = isthmus.nothing_of_the_sort
