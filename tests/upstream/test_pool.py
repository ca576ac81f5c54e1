"""Several keys or places for one provider: who is asked, who is left out and for how long. From the configuration to
the wire, and the rules alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from failing_backend import PLAN, Scripted, ask
from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.errors import CredentialsRefused, UpstreamFailed
from isthmus.ports import Again, trail_of
from isthmus.testing import ScriptedUpstream, Step, chat, error
from isthmus.upstream.pool import REFUSED_REST, PooledBackend
from isthmus.upstream.retry import RetryingBackend
from one_provider import HELLO, keys, one_provider, say

TWO_KEYS = 'api_keys = ["k1", "k2"]'
SPENT = error(402, "Insufficient Balance")
REFUSED: dict[str, Step] = {
    "401": error(401, "bad key"),
    "403": error(403, "this key may not do that"),
    "402": SPENT,
    "429 quota": error(429, "You exceeded your current quota", code="insufficient_quota"),
}


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_or_spent_key_is_replaced_by_a_healthy_one_in_the_same_request(case: str, retries: int) -> None:
    with ScriptedUpstream.running([REFUSED[case], chat("a"), chat("b"), chat("c")]) as upstream:
        with one_provider(upstream, f"{TWO_KEYS}\nretries = {retries}") as (talk, _):
            assert [say(talk) for _ in range(3)] == ["a", "b", "c"]
        assert keys(upstream) == ["k1", "k2", "k2", "k2"]


def test_a_stream_is_answered_by_the_healthy_key_too() -> None:
    with ScriptedUpstream.running([REFUSED["401"], chat("a")]) as upstream:
        with (
            one_provider(upstream, f"{TWO_KEYS}\nretries = 0") as (talk, _),
            talk.streaming("/v1/responses", {**HELLO, "stream": True}) as events,
        ):
            assert list(events)[-1]["response"]["output_text"] == "a"
        assert keys(upstream) == ["k1", "k2"]


def test_the_library_uses_the_healthy_key_within_one_attempt() -> None:
    async def main(upstream: ScriptedUpstream) -> str:
        place = {"base_url": upstream.base_url, "api_keys": ["k1", "k2"]}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            return (await bridge.chat("deepseek/m", "hi")).text

    with ScriptedUpstream.running([REFUSED["401"], chat("a")]) as upstream:
        assert asyncio.run(main(upstream)) == "a"
        assert keys(upstream) == ["k1", "k2"]


def test_only_when_every_key_is_refused_the_refusal_is_passed_on() -> None:
    with ScriptedUpstream.running([REFUSED["401"], REFUSED["403"]]) as upstream:
        with one_provider(upstream, TWO_KEYS) as (talk, _):
            answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.error["code"]) == (403, "upstream_unauthorized")
        assert keys(upstream) == ["k1", "k2"]


def test_of_several_failures_the_one_that_may_pass_is_told() -> None:
    with ScriptedUpstream.running([error(429, "slow down", retry_after=30), REFUSED["401"]]) as upstream:
        with one_provider(upstream, TWO_KEYS) as (talk, _):
            answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.headers["retry-after"]) == (429, "30")


def test_a_refused_key_stays_out_for_minutes_and_is_asked_again_then() -> None:
    with ScriptedUpstream.running([REFUSED["401"], *(chat("x") for _ in range(5))]) as upstream:
        with one_provider(upstream, TWO_KEYS) as (talk, gateway):
            say(talk)
            gateway.skip(REFUSED_REST - 60)
            say(talk)
            say(talk)
            assert set(keys(upstream)[1:]) == {"k2"}
            gateway.skip(120)
            say(talk)
            say(talk)
        assert set(keys(upstream)[-2:]) == {"k1", "k2"}


def test_a_key_is_left_out_no_shorter_than_it_was_told_to_wait() -> None:
    with ScriptedUpstream.running([error(429, "slow", retry_after=200), *(chat("x") for _ in range(5))]) as upstream:
        with one_provider(upstream, f"{TWO_KEYS}\nretries = 0") as (talk, gateway):
            say(talk)
            gateway.skip(150)
            say(talk)
            say(talk)
            assert set(keys(upstream)[1:]) == {"k2"}
            gateway.skip(60)
            say(talk)
            say(talk)
        assert set(keys(upstream)[-2:]) == {"k1", "k2"}


@pytest.mark.parametrize("told", ["99999999", "1e308", "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_key_is_left_out_for_a_day_at_most(told: str) -> None:
    with ScriptedUpstream.running([error(429, "slow", retry_after=told), *(chat("x") for _ in range(3))]) as upstream:
        with one_provider(upstream, f"{TWO_KEYS}\nretries = 0") as (talk, gateway):
            say(talk)
            gateway.skip(86_401)
            say(talk)
            say(talk)
        assert set(keys(upstream)[-2:]) == {"k1", "k2"}


@pytest.mark.parametrize("known", [["k1", "k2"], ["k1", "k2", "k3"]], ids=["two", "three"])
def test_a_conversation_stays_at_one_key_and_others_take_turns(known: list[str]) -> None:
    turns = f"api_keys = {known}"
    with ScriptedUpstream.running(default=chat("x")) as upstream, one_provider(upstream, turns) as (talk, _):
        for _ in range(4):
            say(talk, {**HELLO, "prompt_cache_key": "thread-1"})
            say(talk)
        used = keys(upstream)
        assert len(set(used[::2])) == 1, "a keyed request goes where its cache is warm"
        assert set(used[1::2]) == set(known), "others use every key"
        del upstream.requests[:]
        for number in range(30):
            say(talk, {**HELLO, "prompt_cache_key": f"thread-{number}"})
        assert set(keys(upstream)) == set(known), "and not all conversations the same one"


def failed(code: str, **more: Any) -> UpstreamFailed:
    return UpstreamFailed(code, code=code, **more)


async def test_places_are_used_in_turn() -> None:
    pool = PooledBackend([Scripted(name="a"), Scripted(name="b")])
    assert [await ask(pool) for _ in range(4)] == ["a", "b", "a", "b"]


async def test_a_sick_place_is_left_out_until_it_had_time_to_recover() -> None:
    now = [0.0]
    pool = PooledBackend([Scripted(failed("server_error"), name="a"), Scripted(name="b")], now=lambda: now[0])
    assert [await ask(pool) for _ in range(3)] == ["b", "b", "b"]
    now[0] = 6.0
    assert {await ask(pool) for _ in range(2)} == {"a", "b"}


async def test_a_bad_request_is_not_tried_elsewhere_and_ejects_nobody() -> None:
    pool = PooledBackend([Scripted(failed("invalid_prompt"), name="a"), Scripted(name="b")])
    with pytest.raises(UpstreamFailed):
        await ask(pool)
    assert [await ask(pool) for _ in range(2)] == ["b", "a"]
    assert await pool.ready() is None


async def test_patience_that_is_spent_is_not_spent_again_elsewhere() -> None:
    spent = failed("upstream_timeout", metadata={"spent": True})
    pool = PooledBackend([Scripted(spent, name="a"), Scripted(name="b")])
    with pytest.raises(UpstreamFailed):
        await ask(pool)
    assert [await ask(pool) for _ in range(2)] == ["b", "b"], "but it was sick"


async def test_when_all_are_sick_the_one_that_is_due_first_is_asked_and_ready_says_so() -> None:
    now = [0.0]
    refused = CredentialsRefused("no")
    pool = PooledBackend([Scripted(refused, name="a"), Scripted(failed("server_error"), name="b")], now=lambda: now[0])
    with pytest.raises(UpstreamFailed):
        await ask(pool)
    assert "all 2 places" in (await pool.ready() or "")
    assert await ask(pool) == "b"
    assert await pool.ready() is None


async def test_a_place_without_a_free_connection_is_passed_over_while_another_has_one() -> None:
    busy = Scripted(name="a", queue=1)
    pool = PooledBackend([busy, Scripted(name="b")])
    assert [await ask(pool) for _ in range(3)] == ["b", "b", "b"]
    busy.queue = 0
    assert {await ask(pool) for _ in range(2)} == {"a", "b"}


async def test_where_all_have_a_queue_the_shortest_is_joined() -> None:
    pool = PooledBackend([Scripted(name="a", queue=9), Scripted(name="b", queue=2), Scripted(name="c", queue=5)])
    assert [await ask(pool) for _ in range(3)] == ["b", "b", "b"]


async def test_a_busy_place_is_not_sick() -> None:
    pool = PooledBackend([Scripted(failed("upstream_busy"), name="a"), Scripted(name="b")])
    assert await ask(pool) == "b"
    assert {await ask(pool) for _ in range(2)} == {"a", "b"}


async def test_closing_closes_every_place() -> None:
    places = [Scripted(), Scripted()]
    await PooledBackend(places).aclose()
    assert all(place.closed for place in places)


async def test_each_place_that_was_left_for_another_can_be_read_also_below_retries() -> None:
    first, second = (UpstreamFailed("busy", code="server_is_overloaded") for _ in range(2))
    pool = PooledBackend([Scripted(first), Scripted(second, name="b"), Scripted(name="c")], now=lambda: 0.0)
    sending: Any = RetryingBackend(pool).send(PLAN, {})
    await sending.__aenter__()
    assert trail_of(sending) == [Again(first, elsewhere=True), Again(second, elsewhere=True)]
