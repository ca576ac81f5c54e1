"""All rules have room for a request, or it counts nowhere."""

from __future__ import annotations

import pytest

from isthmus.access.counters import CountersHere
from isthmus.access.limiter import Limiter
from isthmus.access.rules import Rule
from isthmus.errors import RequestRefused
from isthmus.ports.keys import Rates


def rule(name: str = "key:a", **rates: int) -> Rule:
    return Rule(name, f"`{name}`", Rates(**rates))


async def refused(limiter: Limiter, *rules: Rule, tokens: int = 0, streams: bool = False) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await limiter.take(rules, id="refused", tokens=tokens, streams=streams)
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.meaning.status == 429
    return caught.value


async def test_what_one_rule_refuses_counts_with_no_other() -> None:
    limiter = Limiter(CountersHere())
    mine = rule("key:a", requests_per_minute=5, tokens_per_minute=1000, concurrent_requests=5)
    team = rule("team:t", requests_per_minute=2)
    for id in ("r1", "r2"):
        await limiter.take([mine, team], id=id, tokens=100, streams=False)
    for _ in range(20):
        error = await refused(limiter, mine, team, tokens=100)
    assert "team:t" in error.message
    assert "2 requests per minute" in error.message
    alone = await limiter.take([mine], id="r3", tokens=0, streams=False)
    assert alone.headers["x-ratelimit-remaining-requests"] == "2"
    assert alone.headers["x-ratelimit-remaining-tokens"] == "800"


async def test_places_are_for_requests_and_of_those_some_for_streams() -> None:
    limiter = Limiter(CountersHere())
    mine = rule(concurrent_requests=3, concurrent_streams=1)
    first = await limiter.take([mine], id="r1", tokens=0, streams=True)
    assert "1 streams at the same time" in (await refused(limiter, mine, streams=True)).message
    await limiter.take([mine], id="r2", tokens=0, streams=False)
    await limiter.take([mine], id="r3", tokens=0, streams=False)
    error = await refused(limiter, mine)
    assert "3 requests at the same time" in error.message
    assert error.retry_after == 1.0
    await limiter.end(first, 0)
    await limiter.take([mine], id="r4", tokens=0, streams=True)


async def test_in_the_end_the_window_says_what_was_really_used() -> None:
    limiter = Limiter(CountersHere())
    mine = rule(tokens_per_minute=1000)
    for number in range(9):
        taken = await limiter.take([mine], id=f"r{number}", tokens=900, streams=False)
        assert (await refused(limiter, mine, tokens=900)).metadata["limits"]["x-ratelimit-limit-tokens"] == "1000"
        await limiter.end(taken, 10)
    taken = await limiter.take([mine], id="last", tokens=10, streams=False)
    assert taken.headers["x-ratelimit-remaining-tokens"] == "900"


async def test_what_is_more_than_a_whole_minute_passes_when_nothing_else_does() -> None:
    limiter = Limiter(CountersHere())
    mine = rule(tokens_per_minute=1000)
    taken = await limiter.take([mine], id="r1", tokens=50_000, streams=False)
    error = await refused(limiter, mine, tokens=50_000)
    assert "takes about 50,000" in error.message
    await limiter.end(taken, 0)
    await limiter.take([mine], id="r2", tokens=50_000, streams=False)


async def test_a_refusal_says_whose_limit_it_is_when_to_ask_again_and_how_it_stands() -> None:
    limiter = Limiter(CountersHere())
    mine = rule(requests_per_minute=1)
    await limiter.take([mine], id="r1", tokens=0, streams=False)
    error = await refused(limiter, mine)
    assert error.message.startswith("`key:a` may send 1 requests per minute; try again in ")
    assert error.retry_after is not None
    assert 0 < error.retry_after <= 120
    assert error.metadata["limits"]["x-ratelimit-remaining-requests"] == "0"


async def test_what_was_never_sent_does_not_count() -> None:
    limiter = Limiter(CountersHere())
    mine = rule(requests_per_minute=1, tokens_per_minute=10, concurrent_requests=1)
    for number in range(5):
        await limiter.undo(await limiter.take([mine], id=f"r{number}", tokens=10, streams=False))
