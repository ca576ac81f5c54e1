"""What connections tell of themselves: which one was dead, what breaks HTTP, and how much comes before an answer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from isthmus.testing import ScriptedUpstream, drop, reply
from isthmus.upstream.guard import Guard
from isthmus.upstream.lean.line import MAX_INFORMATIONAL
from isthmus.upstream.proxied.connections import Connector, Guarded, Handler, Malformed, is_stale, name_fault
from raw_server import raw_server

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
INFORMED = b"HTTP/1.1 102 Processing\r\n\r\n"


@asynccontextmanager
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=Connector()) as opened:
        yield opened


async def ask(client: aiohttp.ClientSession, url: str) -> bytes:
    async with client.post(url, data=b"{}") as answer:
        return await answer.read()


async def stale(client: aiohttp.ClientSession, url: str) -> bool:
    """It must fail; whether that was a dead connection's fault."""
    try:
        await ask(client, url)
    except aiohttp.ClientError as error:
        return is_stale(error)
    raise AssertionError("it was answered")


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
async def test_only_a_connection_that_served_before_is_stale(reset: bool) -> None:
    with ScriptedUpstream.running([reply({}), drop(reset=reset), drop(reset=reset)]) as upstream:
        async with session() as client:
            assert await ask(client, upstream.url) == b"{}"
            assert await stale(client, upstream.url)
            assert not await stale(client, upstream.url)  # a new one: that is the server
    assert [request.connection for request in upstream.requests] == [1, 1, 2]


async def test_a_connection_that_cannot_be_opened_is_not_the_one_before() -> None:
    async with session() as client:
        with ScriptedUpstream.running([reply({}), drop()]) as upstream:
            await ask(client, upstream.url)
            assert await stale(client, upstream.url)
        assert not await stale(client, upstream.url)  # nobody is there any more


async def test_another_error_is_no_sign_of_a_dead_connection() -> None:
    with ScriptedUpstream.running([reply({})]) as upstream:
        async with session() as client:
            await ask(client, upstream.url)
            assert not is_stale(ValueError())
            assert not is_stale(aiohttp.ClientPayloadError())


async def test_so_many_informational_answers_are_read_and_no_more() -> None:
    with raw_server(INFORMED * MAX_INFORMATIONAL + OK) as server:
        async with session() as client:
            assert await ask(client, server.base_url) == b"{}"
    with raw_server(INFORMED * (MAX_INFORMATIONAL + 1) + OK) as server:
        async with session() as client:
            with pytest.raises(Malformed, match=f"more than {MAX_INFORMATIONAL} informational"):
                await ask(client, server.base_url)


async def test_they_are_counted_for_each_answer_alone() -> None:
    answer = INFORMED * (MAX_INFORMATIONAL - 1) + OK

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            await reader.readuntil(b"{}")
            writer.write(answer)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server, session() as client:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert [await ask(client, url) for _ in range(3)] == [b"{}"] * 3


class Line(asyncio.Transport):
    """Leads nowhere; what comes in is fed by hand."""

    def close(self) -> None: ...

    def abort(self) -> None: ...

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def connected() -> Handler:
    handler = Handler(asyncio.get_running_loop())
    handler.connection_made(Line())
    handler.begin()
    handler.set_response_params()
    return handler


async def test_who_reads_a_body_hears_of_a_broken_chunk() -> None:
    handler = connected()
    handler.data_received(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
    _, body = await handler.read()
    assert await body.readany() == b"abc"
    handler.data_received(b"zz\r\nabc\r\n")
    with pytest.raises(Malformed, match="chunks"):
        await body.readany()


async def test_a_body_that_is_whole_is_not_spoiled_by_what_comes_behind_it() -> None:
    handler = connected()
    handler.data_received(OK)
    _, body = await handler.read()
    handler.data_received(b"and more")
    assert await body.read() == b"{}"
    assert handler.should_close


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("Can not decode content-encoding: brotli (br). Please install `Brotli`", "compressed as `br`, which was"),
        ("Can not decode content-encoding: zstandard (zstd). Please install x", "compressed as `zstd`, which was"),
        ("Can not decode content-encoding: odd", "is compressed, which was not asked for"),
        ("Invalid character in chunk size:\n\n  b'zz'\n    ^", "chunks"),
        ("Invalid character in Content-Length:\n\n  b'content-length: x'", "`content-length` is wrong"),
        ("Duplicate Content-Length:\n\n  b'content-length: 4'", "`content-length` is wrong"),
        ("Transfer-Encoding can't be present with Content-Length:\n\n  b'x'", "`content-length` is wrong"),
        ("Got more than 8190 bytes when reading: b'yyy...'.", "headers are too long"),
        ("Too many headers received", "headers are too long"),
        ("Bad status line:\n  Expected HTTP/, RTSP/ or ICE/:\n\n  b'SSH-2.0'", "is not HTTP, or is longer"),
        ("Invalid header token:\n\n  b'chunk content-length \\x01'\n  ^", "its answer is not HTTP"),
        ("", "its answer is not HTTP"),
    ],
)
def test_a_fault_is_told_without_what_was_sent(words: str, told: str) -> None:
    assert told in name_fault(words)
    assert name_fault(f"{words} b'sk-secret'") == name_fault(words)


# ── names that lead only where somebody may be called ──────────────────────────────────────────────────


async def test_a_name_is_followed_only_to_where_it_may_lead() -> None:
    asked: list[tuple[str, int]] = []

    async def lookup(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.2", "127.0.0.1"]

    with ScriptedUpstream.running([reply({})]) as upstream:
        guard = Guarded(Guard(lambda address: address == "127.0.0.1", lookup))
        async with aiohttp.ClientSession(connector=Connector(resolver=guard)) as client:
            assert await ask(client, f"http://hooks.example:{upstream.port}/") == b"{}"
        assert asked == [("hooks.example", upstream.port)]
        assert upstream.requests[0].headers["host"] == f"hooks.example:{upstream.port}"


async def test_addresses_of_both_kinds_are_told_apart() -> None:
    async def lookup(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]

    found = await Guarded(Guard(lambda address: True, lookup)).resolve("here", 80)
    assert [(each["host"], each["family"]) for each in found] == [
        ("::1", socket.AF_INET6),
        ("127.0.0.1", socket.AF_INET),
    ]


async def test_an_address_in_place_of_a_name_asks_the_guard_too() -> None:
    async with ScriptedUpstream() as upstream:
        async with aiohttp.ClientSession(connector=Connector(resolver=Guarded(Guard(lambda address: False)))) as client:
            with pytest.raises(aiohttp.ClientConnectorError, match=r"`127\.0\.0\.1` may not be called"):
                await ask(client, upstream.url)
        assert upstream.requests == []
