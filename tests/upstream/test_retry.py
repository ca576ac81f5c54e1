"""New attempts before the upstream has accepted: when, after how long, and when not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from isthmus.bridge.deltas import Delta, Text
from isthmus.bridge.types.plan import Plan
from isthmus.errors import UpstreamFailed
from isthmus.testing.fold import plan_for
from isthmus.upstream.pool import PooledBackend
from isthmus.upstream.retry import RetryingBackend, RetryRule

PLAN = plan_for()


class Scripted:
    """A backend that fails as told, then answers."""

    def __init__(self, *failures: UpstreamFailed | None, name: str = "") -> None:
        self.failures = list(failures)
        self.name = name
        self.sent = 0
        self.closed = False

    @asynccontextmanager
    async def send(self, plan: Plan, body: dict[str, Any]) -> AsyncIterator[AsyncIterator[Sequence[Delta]]]:
        self.sent += 1
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        yield self._answer()

    async def _answer(self) -> AsyncIterator[Sequence[Delta]]:
        yield [Text(self.name)]

    async def ready(self) -> str | None:
        return None

    async def aclose(self) -> None:
        self.closed = True


def failed(code: str, *, retry_after: float | None = None, status: int | None = 500) -> UpstreamFailed:
    return UpstreamFailed(code, code=code, status=status, retry_after=retry_after)


async def ask(backend: Any, plan: Plan = PLAN) -> str:
    async with backend.send(plan, {}) as answer:
        return "".join([delta.text async for deltas in answer for delta in deltas])


def retrying(inner: Any, retries: int = 2) -> tuple[RetryingBackend, list[float]]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    return RetryingBackend(inner, RetryRule(retries=retries), sleep=sleep, jitter=lambda: 1.0), waits


@pytest.mark.parametrize(
    "code", ["rate_limit_exceeded", "server_is_overloaded", "server_error", "upstream_unreachable"]
)
async def test_a_passing_failure_is_tried_again_with_growing_waits(code: str) -> None:
    inner = Scripted(failed(code), failed(code), name="ok")
    backend, waits = retrying(inner)
    assert await ask(backend) == "ok"
    assert waits == [0.5, 1.0]


@pytest.mark.parametrize(
    "code", ["invalid_prompt", "context_length_exceeded", "model_not_found", "upstream_unauthorized"]
)
async def test_a_failure_that_will_not_pass_is_not_tried_again(code: str) -> None:
    inner = Scripted(failed(code))
    backend, _ = retrying(inner)
    with pytest.raises(UpstreamFailed):
        await ask(backend)
    assert inner.sent == 1


async def test_a_spent_patience_is_not_spent_again() -> None:
    inner = Scripted(failed("upstream_timeout", status=None))
    backend, _ = retrying(inner)
    with pytest.raises(UpstreamFailed):
        await ask(backend)
    assert inner.sent == 1


async def test_retry_after_is_honoured_and_a_long_one_is_passed_on() -> None:
    backend, waits = retrying(Scripted(failed("rate_limit_exceeded", retry_after=3), name="ok"))
    assert await ask(backend) == "ok"
    assert waits == [3]
    backend, waits = retrying(Scripted(failed("rate_limit_exceeded", retry_after=600)))
    with pytest.raises(UpstreamFailed) as caught:
        await ask(backend)
    assert (caught.value.retry_after, waits) == (600, [])


async def test_the_attempts_end() -> None:
    inner = Scripted(*(failed("server_error") for _ in range(9)))
    backend, _ = retrying(inner, retries=3)
    with pytest.raises(UpstreamFailed):
        await ask(backend)
    assert inner.sent == 4


async def test_places_are_used_in_turn() -> None:
    pool = PooledBackend([Scripted(name="a"), Scripted(name="b")])
    assert [await ask(pool) for _ in range(4)] == ["a", "b", "a", "b"]


async def test_a_sick_place_is_left_out_until_it_had_time_to_recover() -> None:
    now = [0.0]
    sick = Scripted(failed("server_error"), name="a")
    pool = PooledBackend([sick, Scripted(name="b")], now=lambda: now[0])
    with pytest.raises(UpstreamFailed):
        await ask(pool)
    assert [await ask(pool) for _ in range(3)] == ["b", "b", "b"]
    now[0] = 6.0
    assert {await ask(pool) for _ in range(2)} == {"a", "b"}


async def test_a_free_place_is_tried_at_once_without_waiting() -> None:
    pool = PooledBackend([Scripted(failed("rate_limit_exceeded", retry_after=30)), Scripted(name="b")])
    backend, waits = retrying(pool)
    assert await ask(backend) == "b"
    assert waits == [0.0]


async def test_a_bad_request_ejects_nobody() -> None:
    pool = PooledBackend([Scripted(failed("invalid_prompt"), name="a"), Scripted(name="b")])
    with pytest.raises(UpstreamFailed):
        await ask(pool)
    assert [await ask(pool) for _ in range(2)] == ["b", "a"]
    assert await pool.ready() is None


async def test_when_all_are_sick_the_one_that_waited_longest_is_asked_and_ready_says_so() -> None:
    now = [0.0]
    pool = PooledBackend(
        [Scripted(failed("server_error"), name="a"), Scripted(failed("server_error"), name="b")], now=lambda: now[0]
    )
    for second in (0.0, 1.0):
        now[0] = second
        with pytest.raises(UpstreamFailed):
            await ask(pool)
    assert "all 2 places" in (await pool.ready() or "")
    assert await ask(pool) == "a"


async def test_a_conversation_stays_where_its_cache_is_warm() -> None:
    pool = PooledBackend([Scripted(name=name) for name in "abc"])
    plan = plan_for({"prompt_cache_key": "thread-1"})
    assert len({await ask(pool, plan) for _ in range(5)}) == 1


async def test_closing_closes_every_place() -> None:
    places = [Scripted(), Scripted()]
    backend, _ = retrying(PooledBackend(places))
    await backend.aclose()
    assert all(place.closed for place in places)
