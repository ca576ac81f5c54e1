"""What goes wrong on the way to a provider is told without the secrets of its address."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from isthmus.errors import IsthmusError
from isthmus.testing import ScriptedUpstream, error, reply, silence, stream
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.remote import GatewayAddress, RemoteGateway
from leaking import assert_silent, everything_of
from raw_server import raw_server
from reaching_out import failure
from speaking_responses import native_reply

pytestmark = pytest.mark.usefixtures("either_client")
REFUSING_PROXY = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
NOT_HTTP = b"HTTP/1.1 200 OK\r\nbad header \x01line\r\n: x\r\n\r\n"


async def test_a_proxy_that_refuses_is_told_without_its_password() -> None:
    with raw_server(REFUSING_PROXY) as server:
        told = await failure(Endpoint("mine", "https://provider.test/v1", proxy=f"http://joe:hush@{server.host}"))
    assert "hush" not in told.message
    assert (told.code, "proxy answered HTTP 407" in told.message) == ("upstream_unreachable", True)


async def test_an_answer_that_is_not_http_is_told_without_the_key_in_the_query() -> None:
    with raw_server(NOT_HTTP) as server:
        told = await failure(Endpoint("mine", f"http://{server.host}/v1", query={"key": "hush"}, trust_env=False))
    assert "hush" not in told.message
    assert (told.code, "is not HTTP" in told.message) == ("upstream_malformed", True)


def test_an_endpoint_prints_no_secret() -> None:
    secrets = {"key": "hush"}
    endpoint = Endpoint(
        "mine", "http://joe:hush@h/v1?key=hush", headers=secrets, query=secrets, proxy="http://joe:hush@proxy"
    )
    assert "hush" not in repr(endpoint)


# What a library says of a connection may hold the address; what an upstream says may hold anything.


LONG = "sk-live-0Zq7Kd81mXw4Tn92"
ODD = "f/uncti+on=Key==7Hs2&9Qx"


@asynccontextmanager
async def resetting() -> AsyncIterator[str]:
    """A server that tears the connection down while the request is still being written."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1024)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_a_request_that_cannot_be_written_is_told_without_the_key_in_the_query() -> None:
    async with resetting() as place:
        endpoint = Endpoint("mine", f"http://{place}/v1", query={"code": ODD, "k": LONG}, trust_env=False)
        told = await failure(endpoint, {"input": "x" * 20_000_000})
    assert told.code == "upstream_unreachable"
    assert_silent([ODD, LONG], error=everything_of(told))


DROPPING = {
    "no answer": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nx-echo: " + LONG.encode() + b"\r\n",
    "not HTTP": NOT_HTTP,
    "half a body": b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n" + LONG.encode(),
    "half an error": b"HTTP/1.1 500 Oh\r\nx-request-id: " + LONG.encode() + b"\r\ncontent-length: 100\r\n\r\n{",
}


@pytest.mark.parametrize("said", DROPPING.values(), ids=list(DROPPING))
async def test_a_connection_that_breaks_off_takes_no_secret_with_it(said: bytes) -> None:
    with raw_server(said) as server:
        endpoint = Endpoint("mine", f"http://{server.host}/v1?k={LONG}", query={"code": ODD}, trust_env=False)
        told = await failure(endpoint)
    assert_silent([ODD, LONG], error=everything_of(told))


async def test_an_address_that_cannot_be_reached_takes_no_secret_with_it() -> None:
    hidden = Endpoint("mine", f"http://joe:{LONG}@127.0.0.1:1/v1?k={LONG}", query={"code": ODD}, trust_env=False)
    told = await failure(hidden)
    assert told.code == "upstream_unreachable"
    assert_silent([ODD, LONG], error=everything_of(told), place=repr(hidden))


async def test_a_server_that_never_answers_takes_no_secret_with_it() -> None:
    with ScriptedUpstream.running([silence()]) as upstream:
        patience = Patience(connect=0.1, first_byte=0.1)
        told = await failure(
            Endpoint("mine", upstream.base_url, query={"code": ODD}, trust_env=False, patience=patience)
        )
    assert told.code == "upstream_timeout"
    assert_silent([ODD], error=everything_of(told))


async def test_a_short_key_goes_only_where_it_stands_as_one() -> None:
    body = b'{"error": {"message": "the test model test-1 got api_key=test, Bearer test"}}'
    head = f"HTTP/1.1 500 Oh\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with raw_server(head + body) as server:
        headers = {"authorization": "Bearer test"}
        told = await failure(Endpoint("mine", f"http://{server.host}/v1", headers=headers, trust_env=False))
    assert told.message == "provider `mine`: the test model test-1 got api_key=<redacted>, Bearer <redacted>"


# A gateway at an address


@pytest.mark.parametrize("said", DROPPING.values(), ids=list(DROPPING))
async def test_a_gateway_that_breaks_off_takes_no_secret_with_it(said: bytes) -> None:
    with raw_server(said) as server:
        told = await gateway_failure(GatewayAddress(f"http://{server.host}/v1?k={LONG}", LONG))
    assert_silent([LONG], error=told if isinstance(told, str) else everything_of(told))


async def test_a_gateway_that_repeats_our_key_is_not_repeated() -> None:
    said = f"no {LONG} here"
    for step in (
        error(400, said),
        error(500, said),
        reply({"error": {"message": said, "code": LONG, "param": said}}, status=400),
        reply({**native_reply([], status="failed"), "error": {"code": "server_error", "message": said}}),
        stream([{"type": "response.failed", "response": {"status": "failed", "error": {"message": said}}}]),
        stream([b"data: " + LONG.encode() + b"\n\n"]),
    ):
        with ScriptedUpstream.running([step]) as upstream:
            address = GatewayAddress(upstream.base_url, LONG)
            assert LONG not in repr(address)
            told = await gateway_failure(address)
        assert_silent([LONG], error=told if isinstance(told, str) else everything_of(told))


async def gateway_failure(address: GatewayAddress) -> Exception | str:
    """The error it ends in; or, where that is told by an event, the events."""
    wire = RemoteGateway(address)
    try:
        return repr([batch async for batch in wire.events({"input": "Hi"})])
    except IsthmusError as failed:
        return failed
    finally:
        await wire.aclose()
