"""New attempts before the upstream has accepted: when, after how long, and when not."""

from __future__ import annotations

from typing import Any

import pytest

from failing_backend import PLAN, Scripted, ask
from isthmus.errors import UpstreamFailed
from isthmus.ports import Again, trail_of
from isthmus.upstream.retry import RetryingBackend, RetryRule


def failed(code: str, *, retry_after: float | None = None, status: int | None = 500) -> UpstreamFailed:
    return UpstreamFailed(code, code=code, status=status, retry_after=retry_after)


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


async def test_what_happened_until_it_was_accepted_can_be_read_and_so_can_what_happened_in_vain() -> None:
    failures = [failed("server_error"), failed("server_error")]
    backend, _ = retrying(Scripted(*failures, name="ok"))
    sending: Any = backend.send(PLAN, {})
    await sending.__aenter__()
    assert trail_of(sending) == [Again(failures[0], 0.5), Again(failures[1], 1.0)]
    backend, _ = retrying(Scripted(*failures, failed("server_error")), retries=1)
    sending = backend.send(PLAN, {})
    with pytest.raises(UpstreamFailed):
        await sending.__aenter__()
    assert trail_of(sending) == [Again(failures[0], 0.5)]


async def test_a_spent_patience_is_not_spent_again() -> None:
    inner = Scripted(UpstreamFailed("too late", code="upstream_timeout", metadata={"spent": True}))
    backend, _ = retrying(inner)
    with pytest.raises(UpstreamFailed):
        await ask(backend)
    assert inner.sent == 1


async def test_a_short_told_wait_is_bridged_once_and_a_longer_one_is_passed_on() -> None:
    backend, waits = retrying(Scripted(failed("rate_limit_exceeded", retry_after=2), name="ok"))
    assert await ask(backend) == "ok"
    assert waits == [2]
    twice = Scripted(failed("rate_limit_exceeded", retry_after=1), failed("rate_limit_exceeded", retry_after=1))
    backend, waits = retrying(twice)
    with pytest.raises(UpstreamFailed) as caught:
        await ask(backend)
    assert (caught.value.retry_after, waits, twice.sent) == (1, [1], 2)
    backend, waits = retrying(Scripted(failed("server_is_overloaded", retry_after=2.1)))
    with pytest.raises(UpstreamFailed) as caught:
        await ask(backend)
    assert (caught.value.retry_after, waits) == (2.1, [])


async def test_the_attempts_end() -> None:
    inner = Scripted(*(failed("server_error") for _ in range(9)))
    backend, _ = retrying(inner, retries=3)
    with pytest.raises(UpstreamFailed):
        await ask(backend)
    assert inner.sent == 4


async def test_closing_closes_what_is_inside() -> None:
    inner = Scripted()
    backend, _ = retrying(inner)
    await backend.aclose()
    assert inner.closed
