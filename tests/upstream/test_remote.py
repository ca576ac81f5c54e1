"""A gateway at an address, as the client library hears it: what is refused by whom, and what is tried again."""

from __future__ import annotations

import pytest

from isthmus import Bridge, Retry
from isthmus.errors import CredentialsRefused, IsthmusError, RateLimited, RequestRefused, UpstreamFailed
from isthmus.testing import ScriptedUpstream, Step, drop, error, reply
from speaking_responses import native

QUICK = Retry(attempts=3, base=0.001, cap=0.002)


async def fail(*steps: Step) -> tuple[IsthmusError, int]:
    """The error that a bridge raises, and how often the gateway was asked."""
    with ScriptedUpstream.running(steps) as gateway:
        async with Bridge.remote(gateway.url, api_key="k", retry=QUICK) as bridge:
            with pytest.raises(IsthmusError) as caught:
                await bridge.chat("some/model", "hi")
        return caught.value, len(gateway.requests)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("code", [None, "invalid_api_key", "upstream_unauthorized"])
async def test_a_key_that_the_gateway_refuses_is_refused_and_not_tried_again(status: int, code: str | None) -> None:
    failure, asked = await fail(error(status, "who are you?", code=code))
    assert type(failure) is CredentialsRefused
    assert (failure.code, failure.status, failure.retryable, asked) == ("upstream_unauthorized", status, False, 1)


@pytest.mark.parametrize("status", [400, 404, 405, 413, 415, 422])
async def test_what_the_caller_can_mend_is_a_refused_request(status: int) -> None:
    failure, asked = await fail(error(status, "no", code="odd_one"))
    assert type(failure) is RequestRefused
    assert asked == 1


async def test_the_callers_turn_is_read_off_the_table() -> None:
    failure, asked = await fail(error(409, "not yet", code="previous_response_not_finished"))
    assert (type(failure), asked) == (RequestRefused, 1)
    failure, asked = await fail(error(404, "no such model", code="model_not_found"))
    assert isinstance(failure, UpstreamFailed)


async def test_what_may_pass_is_tried_again() -> None:
    failure, asked = await fail(*[error(429, "slow down", retry_after=0)] * 3)
    assert (type(failure), asked) == (RateLimited, 3)
    failure, asked = await fail(*[error(503, "busy", code="upstream_busy", retry_after=0)] * 3)
    assert (failure.code, asked) == ("upstream_busy", 3)


async def test_a_dead_connection_to_the_gateway_is_replaced_without_an_attempt() -> None:
    with ScriptedUpstream.running([native("a"), drop(), native("b")]) as gateway:
        async with Bridge.remote(gateway.url, retry=Retry(attempts=1)) as bridge:
            assert (await bridge.chat("some/model", "hi", stream=False)).text == "a"
            second = await bridge.chat("some/model", "hi", stream=False)
            assert (second.text, second.usage.requests) == ("b", 1)


async def test_an_absurd_wait_is_a_day() -> None:
    failure, _ = await fail(reply({"error": {"message": "no"}}, status=429, headers={"Retry-After": "1e308"}))
    assert failure.retry_after == 86_400.0
