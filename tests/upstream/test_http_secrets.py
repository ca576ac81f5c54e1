"""What goes wrong on the way to a provider is told without the secrets of its address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.server.errors import error_headers
from isthmus.testing.fold import plan_for
from isthmus.upstream.http import Endpoint, HttpBackend, parse_retry_after

REFUSING_PROXY = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"
NOT_HTTP = b"HTTP/1.1 200 OK\r\nbad header \x01line\r\n: x\r\n\r\n"


@asynccontextmanager
async def answering(reply: bytes) -> AsyncIterator[str]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def failure(endpoint: Endpoint) -> UpstreamFailed:
    backend = HttpBackend(endpoint)
    try:
        with pytest.raises(UpstreamFailed) as failed:
            async with backend.send(plan_for(), {}):
                pass
        return failed.value
    finally:
        await backend.aclose()


async def test_a_proxy_that_refuses_is_told_without_its_password() -> None:
    async with answering(REFUSING_PROXY) as place:
        told = await failure(Endpoint("mine", "https://provider.test/v1", proxy=f"http://joe:hush@{place}"))
    assert "hush" not in told.message
    assert (told.code, "proxy answered HTTP 407" in told.message) == ("upstream_unreachable", True)


async def test_an_answer_that_is_not_http_is_told_without_the_key_in_the_query() -> None:
    async with answering(NOT_HTTP) as place:
        told = await failure(Endpoint("mine", f"http://{place}/v1", query={"key": "hush"}, trust_env=False))
    assert "hush" not in told.message
    assert (told.code, "is not HTTP" in told.message) == ("upstream_unreachable", True)


def test_an_endpoint_prints_no_secret() -> None:
    secrets = {"key": "hush"}
    endpoint = Endpoint("mine", "http://h/v1", headers=secrets, query=secrets, proxy="http://joe:hush@proxy")
    assert "hush" not in repr(endpoint)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
def test_a_time_to_wait_that_is_no_number_is_no_time_to_wait(value: str) -> None:
    seconds = parse_retry_after(value, 0.0)
    assert seconds is None
    assert error_headers(UpstreamFailed("slow down", code="rate_limit_exceeded", retry_after=seconds))
