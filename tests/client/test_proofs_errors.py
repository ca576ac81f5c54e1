"""Promises kept, from the public API to the bytes on a socket and back: profiles, failures, retries."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from isthmus import Bridge, Retry, Retrying, partial_result
from isthmus.client.repair import find_problems
from isthmus.errors import (
    ContextTooLong,
    CredentialsRefused,
    IsthmusError,
    ModelNotFound,
    Overloaded,
    PromptRefused,
    QuotaSpent,
    RateLimited,
    UpstreamFailed,
    UpstreamTimedOut,
)
from isthmus.testing import ScriptedUpstream, chat, error, stream
from isthmus.testing.replies import chat_chunks, event
from leaking import everything_of, listening
from own_time import clock, run_in_own_time
from reaching import MODEL, WIRES, double, reach, same, scene

# ── 6 ──────────────────────────────────────────────────────────────────────────────────────────────


def test_6_profiles_never_see_each_others_keys() -> None:
    def keys(upstream: ScriptedUpstream) -> list[str]:
        return [request.headers["authorization"] for request in upstream.requests]

    async def main() -> None:
        with ScriptedUpstream.running(default=chat("ok")) as a, ScriptedUpstream.running(default=chat("ok")) as b:
            profiles = {
                "deepseek": {
                    "prod": {"base_url": a.base_url, "api_key": "key-a"},
                    "test": {"base_url": b.base_url, "api_key": "key-b"},
                }
            }
            async with Bridge(profiles) as bridge:
                for profile in ("prod", "test", "prod"):
                    await bridge.chat(f"deepseek@{profile}:deepseek-flash", "hi")
                both = [f"deepseek@{profile}/deepseek-flash" for profile in ("prod", "test") * 10]
                await asyncio.gather(*(bridge.chat(name, "hi") for name in both))
            assert keys(a) == ["Bearer key-a"] * 12
            assert keys(b) == ["Bearer key-b"] * 11

    asyncio.run(main())


# ── 7 ──────────────────────────────────────────────────────────────────────────────────────────────


FAILURES: dict[int, type[UpstreamFailed]] = {
    400: PromptRefused,
    401: CredentialsRefused,
    403: CredentialsRefused,
    404: ModelNotFound,
    408: UpstreamTimedOut,
    409: RateLimited,
    413: ContextTooLong,
    422: PromptRefused,
    429: RateLimited,
    500: UpstreamFailed,
    503: Overloaded,
    504: UpstreamTimedOut,
    529: Overloaded,
}
PASSING = (408, 409, 429, 500, 503, 504, 529)


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("status", FAILURES)
def test_7_every_status_is_its_own_error(wire: str, streamed: bool, status: int) -> None:
    async def main() -> None:
        async with reach(wire, [same(error(status, "oops", retry_after=0))], retry=Retry(attempts=1)) as (bridge, _):
            with pytest.raises(UpstreamFailed) as caught:
                await bridge.chat(MODEL, "Go.", stream=streamed)
            failure = caught.value
            assert type(failure) is FAILURES[status]
            assert (failure.status, failure.provider, failure.retry_after) == (status, "openai", 0)
            assert failure.retryable is (status in PASSING)

    asyncio.run(main())


@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, CredentialsRefused), (429, RateLimited), (500, UpstreamFailed), (529, Overloaded), (400, PromptRefused)],
)
def test_7_a_gateway_passes_the_kind_of_failure_on(status: int, kind: type[UpstreamFailed], streamed: bool) -> None:
    async def main() -> None:
        async with reach("gateway", [same(error(status, "oops", retry_after=7))], retry=Retry(attempts=1)) as (
            bridge,
            _,
        ):
            with pytest.raises(UpstreamFailed) as caught:
                await bridge.chat(MODEL, "Go.", stream=streamed)
            assert type(caught.value) is kind
            assert caught.value.retry_after == (7 if status in (429, 529, 500, 401, 400) else None)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (error(400, "maximum context length is 10 tokens"), ContextTooLong),
        (error(429, "you exceeded your current quota", code="insufficient_quota"), QuotaSpent),
    ],
    ids=["context", "quota"],
)
def test_7_the_words_know_more_than_the_status(step: Any, kind: type[UpstreamFailed]) -> None:
    async def main() -> None:
        async with reach("chat", [same(step)]) as (bridge, _):
            with pytest.raises(kind):
                await bridge.chat(MODEL, "Go.")

    asyncio.run(main())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("streamed", [True, False], ids=["stream", "whole"])
def test_7_429_429_200_is_tried_again_and_counted(wire: str, streamed: bool) -> None:
    async def main() -> None:
        tight = same(error(429, "slow down", retry_after=0))
        heard: list[Any] = []
        async with reach(wire, [tight, tight, scene("ok")]) as (bridge, upstream):
            run = await bridge.run(MODEL, "Go.", stream=streamed, on_event=heard.append)
            assert (run.output, run.usage.requests, len(upstream.requests)) == ("ok", 3, 3)
            assert [one.attempt for one in heard if isinstance(one, Retrying)] == [1, 2]

    asyncio.run(main())


def test_7_nothing_is_tried_again_once_the_model_has_spoken() -> None:
    async def main() -> None:
        broken = stream([event(chat_chunks("Hello")[0]), event(chat_chunks("Hello")[1])], done=False)
        async with reach("chat", [same(broken)]) as (bridge, upstream):
            with pytest.raises(UpstreamFailed):
                await bridge.chat(MODEL, "Go.")
            assert len(upstream.requests) == 1

    asyncio.run(main())


def test_7_a_retry_after_beyond_the_deadline_is_not_waited_for() -> None:
    async def main() -> None:
        async with reach("chat", [same(error(429, "later", retry_after=30))]) as (bridge, _):
            clock().stop_clock()  # whatever is waited for now never comes
            with pytest.raises(RateLimited) as caught:
                await bridge.chat(MODEL, "Go.", timeout=5)
            assert caught.value.retry_after == 30

    run_in_own_time(main())


def test_7_a_failure_in_the_second_turn_keeps_the_first() -> None:
    async def main() -> None:
        async with reach("chat", [scene(calls=[("c", "double", {"number": 2})]), same(error(401))]) as (bridge, _):
            with pytest.raises(IsthmusError) as caught:
                await bridge.run(MODEL, "Go.", tools=[double])
            run = partial_result(caught.value)
            assert run is not None
            assert (run.stop_reason, run.tool_results[0].value) == ("failed", 4)
            assert find_problems(run.messages) == []

    asyncio.run(main())


# ── secrets ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("wire", WIRES)
async def test_no_exception_of_a_bridge_holds_a_key(wire: str) -> None:
    """In its words, its facts, or in what it was caused by; nor does any log say it."""
    key = "sk-test"  # the key that every wire uses here: short, so it is hidden where it stands as one
    said = f"api_key={key} is wrong, Bearer {key}"
    steps = (
        error(400, said),
        error(500, said),
        error(429, said),
        stream([{"error": {"message": said}}], done=False),
        error(500, said, code=said),
    )
    for step in steps:
        with listening() as heard:
            async with reach(wire, [same(step)], retry=Retry(attempts=1)) as (bridge, _):
                with pytest.raises(IsthmusError) as failed:
                    await bridge.run(MODEL, "Hi")
        assert key not in everything_of(failed.value)
        assert key not in heard.text
