"""A gateway at an address, as the client library hears it: what is refused by whom, and what is tried again."""

from __future__ import annotations

import asyncio

import pytest

from isthmus import Bridge, Retry
from isthmus.errors import CredentialsRefused, IsthmusError, RateLimited, RequestRefused, UpstreamFailed
from isthmus.testing import PATIENCE, Gate, ScriptedUpstream, Step, drop, error, reply, stream
from isthmus.upstream import wire
from isthmus.upstream.endpoint import Patience
from isthmus.upstream.remote import GatewayAddress, RemoteGateway
from raw_server import raw_server
from speaking_responses import native, native_reply

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


# ── answers that are none ──────────────────────────────────────────────────────────────────────────

NO_LISTING: dict[str, Step] = {
    "no JSON": reply(b"<html>"),
    "half of it": reply(b'{"data": [{"id": "a"'),
    "no text": reply(b'{"data": [{"id": "\xff"}]}'),
    "a nest without an end": reply(b'{"data":' * 100_000),
    "a list": reply(b"[]"),
    "no `data`": reply({"object": "list"}),
    "nothing": reply(b""),
    "another `data`": reply({"data": 7}),
}


@pytest.mark.parametrize("case", NO_LISTING)
async def test_a_list_of_models_that_cannot_be_read_is_a_failure_of_the_gateway(case: str) -> None:
    with ScriptedUpstream.running([NO_LISTING[case]]) as gateway:
        async with Bridge.remote(gateway.url, retry=QUICK) as bridge:
            with pytest.raises(UpstreamFailed, match="the gateway sent a list of models"):
                await bridge.models()


async def test_entries_without_a_name_are_left_out() -> None:
    listed = reply({"data": [{"id": "a/b"}, {"id": 7}, {}, "x", None]})
    with ScriptedUpstream.running([listed]) as gateway:
        async with Bridge.remote(gateway.url) as bridge:
            assert [model.name for model in await bridge.models()] == ["a/b"]


@pytest.mark.parametrize(
    "step",
    [
        stream([b"data: {nope\n\n"]),
        stream([b"data: [1]\n\n"]),
        stream([b'data: {"type": 7}\n\n']),
        stream([b'data: {"sequence_number": 1}\n\n']),
        stream([b'data: {"type": "\xff"}\n\n']),
        reply(b"[]"),
        reply(b"{"),
    ],
    ids=["broken", "a list", "a number as type", "no type", "no text", "whole: a list", "whole: broken"],
)
async def test_an_event_that_cannot_be_read_is_a_failure_of_the_gateway(step: Step) -> None:
    with ScriptedUpstream.running([step]) as gateway:
        async with Bridge.remote(gateway.url, retry=Retry(attempts=1)) as bridge:
            with pytest.raises(UpstreamFailed, match="the gateway sent an"):
                await bridge.chat("some/model", "hi")


async def test_a_gateway_that_breaks_http_is_not_called_out_of_reach() -> None:
    said = b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\ncontent-length: 3\r\n\r\nabc"
    with raw_server(said) as server:
        async with Bridge.remote(server.base_url, retry=Retry(attempts=1)) as bridge:
            with pytest.raises(UpstreamFailed) as failed:
                await bridge.chat("some/model", "hi")
    assert failed.value.code == "upstream_malformed"
    assert failed.value.message.startswith("the gateway breaks the rules of HTTP: its answer is compressed as `br`")


async def test_informational_answers_of_a_gateway_without_an_end_are_given_up() -> None:
    with raw_server(endless=b"HTTP/1.1 100 Continue\r\n\r\n" * 100) as server:
        gateway = RemoteGateway(GatewayAddress(server.base_url, patience=Patience(first_byte=20)))
        with pytest.raises(UpstreamFailed) as failed:
            await gateway.models()
        await gateway.aclose()
    assert failed.value.code == "upstream_malformed"


# ── its wire ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_consecutive_answers_survive_dead_connections_without_an_attempt(
    monkeypatch: pytest.MonkeyPatch, reset: bool, streamed: bool
) -> None:
    monkeypatch.setattr(wire, "_LINGER", PATIENCE)  # a connection is kept, however slow the machine
    script: list[Step] = [native("0")]
    for number in range(1, 4):
        script += [drop(reset=reset), native(str(number))]
    with ScriptedUpstream.running(script) as gateway:
        async with Bridge.remote(gateway.url, retry=Retry(attempts=1)) as bridge:
            heard = [await bridge.chat("some/model", "hi", stream=streamed) for _ in range(4)]
        assert [(answer.text, answer.usage.requests) for answer in heard] == [(str(each), 1) for each in range(4)]


async def test_any_number_may_wait_for_a_gateway() -> None:
    gate, many = Gate(), 200
    with ScriptedUpstream.running(default=reply(native_reply([]), after=gate)) as gateway:
        async with Bridge.remote(gateway.url, retry=Retry(attempts=1)) as bridge:
            asked = [asyncio.create_task(bridge.chat("some/model", "hi", stream=False)) for _ in range(many)]
            await gateway.received(many)
            gate.open()
            await asyncio.gather(*asked)
        assert gateway.connections == many


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://h:1", "http://h:1/v1"),
        ("http://h:1/", "http://h:1/v1"),
        ("http://h:1/v1", "http://h:1/v1"),
        ("http://h:1/team/v1/", "http://h:1/team/v1"),
    ],
)
def test_an_address_without_a_path_means_the_first_version(given: str, base: str) -> None:
    assert GatewayAddress(given).base == base
