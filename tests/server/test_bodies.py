"""Request bodies: read whole before a place is taken, in their time, decoded, and bounded in sum."""

from __future__ import annotations

import asyncio
import json
import socket
import tracemalloc
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from isthmus.config.schema import Server
from isthmus.errors import IsthmusError, RequestRefused
from isthmus.server.bodies import Bodies
from own_time import clock, run_in_own_time, turns
from packing import packed
from raw_http import connect
from serving import GatewayThread, running_gateway_server
from talking import Talk

CONFIG = '[server]\nport = 0\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
BODY = b'{"input": "Say hello"}'


@pytest.fixture
def impatient() -> Iterator[GatewayThread]:
    with running_gateway_server(CONFIG.replace("port = 0", "port = 0\nbody_timeout = 0.1")) as server:
        yield server


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions", "/v1/responses/input_tokens"])
@pytest.mark.parametrize(
    "begun",
    [
        pytest.param(b"Content-Length: 22\r\n\r\n", id="nothing came"),
        pytest.param(b"Content-Length: 22\r\n\r\n" + BODY[:9], id="a part came"),
        pytest.param(b"Transfer-Encoding: chunked\r\n\r\n9\r\n" + BODY[:9] + b"\r\n", id="chunks without an end"),
    ],
)
def test_a_body_that_never_ends_is_a_408_and_the_connection_is_closed(
    impatient: GatewayThread, path: str, begun: bytes
) -> None:
    where = urlsplit(impatient.url)
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode() + begun)
        told = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = told.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in head.lower()
    error = json.loads(body)["error"]
    assert (error["code"], error["type"]) == ("request_timeout", "invalid_request_error")
    assert "request body" in error["message"]


def test_a_large_body_has_more_time_than_a_small_one() -> None:
    """It comes at twice the slowest pace, ten times as long as a small one may take."""
    piece = b"x" * 200  # worth 20 ms, comes every 10 ms
    sent = 0

    async def receive() -> dict[str, object]:
        nonlocal sent
        await _ten_milliseconds()
        sent += 1
        return {"type": "http.request", "body": piece, "more_body": sent < 50}

    async def read() -> bytes:
        clock().stop_clock()
        limits = Server(max_body=10**6, body_timeout=0.05, min_body_rate=10_000)
        return await Bodies(limits).read({"headers": []}, receive)

    assert len(run_in_own_time(read())) == 50 * len(piece)


def test_a_trickle_is_given_up() -> None:
    async def receive() -> dict[str, object]:
        await _ten_milliseconds()
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def read() -> bytes:
        clock().stop_clock()
        limits = Server(max_body=10**6, body_timeout=0.05, min_body_rate=10_000)
        return await Bodies(limits).read({"headers": []}, receive)

    with pytest.raises(RequestRefused, match=r"stopped after [456] bytes") as refused:
        run_in_own_time(read())
    assert refused.value.code == "request_timeout"


async def _ten_milliseconds() -> None:
    clock().skip(0.01)
    await turns()


# ── places ─────────────────────────────────────────────────────────────────────────────────────────────


def test_half_sent_bodies_take_no_place() -> None:
    """Ten of them, five times as many as may be served at once."""
    with running_gateway_server(CONFIG.replace("port = 0", "port = 0\nmax_concurrent = 2")) as server:
        half = [connect(server.url) for _ in range(10)]
        try:
            for each in half:
                each.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: 22\r\n\r\n" + BODY[:9])
            assert Talk(server.url).post("/v1/responses", {"input": "Say hello"}).status == 200
            half[0].sendall(BODY[9:])
            assert half[0].recv(12) == b"HTTP/1.1 200"
        finally:
            for each in half:
                each.close()


# ── sums and sizes ─────────────────────────────────────────────────────────────────────────────────────


class Sender:
    """A client that sends piece by piece, when it is told to."""

    def __init__(self, bodies: Bodies, **headers: str) -> None:
        self._pieces: asyncio.Queue[dict[str, object]] = asyncio.Queue()
        named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        self.reading = asyncio.create_task(bodies.read({"headers": named}, self._pieces.get))

    async def send(self, piece: bytes, *, last: bool = False) -> None:
        self._pieces.put_nowait({"type": "http.request", "body": piece, "more_body": not last})
        await turns()


def test_when_all_together_are_too_much_the_oldest_is_given_up() -> None:
    async def test() -> None:
        clock().stop_clock()
        bodies = Bodies(Server(max_bodies=250))
        first, second, third = (Sender(bodies) for _ in range(3))
        for each in (first, second, third):
            await each.send(b"x" * 100)
        with pytest.raises(IsthmusError, match="max_bodies") as refused:
            await first.reading
        assert refused.value.meaning.status == 503
        await second.send(b"", last=True)
        assert await second.reading == b"x" * 100
        await third.send(b"y" * 1000, last=True)  # whole: it is not kept, it is handed over
        assert len(await third.reading) == 1100
        fourth = Sender(bodies)
        await fourth.send(b"x" * 249)
        assert not fourth.reading.done(), "those that are over hold nothing"
        await fourth.send(b"x", last=True)
        await fourth.reading

    run_in_own_time(test())


def test_a_body_that_is_too_large_alone_is_given_up() -> None:
    async def test() -> None:
        clock().stop_clock()
        sender = Sender(Bodies(Server(max_bodies=250)))
        await sender.send(b"x" * 300)
        with pytest.raises(IsthmusError, match="max_bodies"):
            await sender.reading

    run_in_own_time(test())


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_a_bomb_is_refused_before_it_has_grown(encoding: str) -> None:
    async def test() -> None:
        sender = Sender(Bodies(Server(max_body=1_000_000)), content_encoding=encoding)
        await sender.send(packed(encoding, b"0" * 30_000_000), last=True)
        tracemalloc.start()
        with pytest.raises(RequestRefused) as refused:
            await sender.reading
        assert refused.value.code == "payload_too_large"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()

    asyncio.run(test())


def test_others_have_their_turn_while_a_body_is_decoded() -> None:
    async def test() -> int:
        sender = Sender(Bodies(Server()), content_encoding="gzip")
        sender._pieces.put_nowait({"type": "http.request", "body": packed("gzip", b"0" * 5_000_000)})
        passed = 0
        while not sender.reading.done():
            await asyncio.sleep(0)
            passed += 1
        assert len(await sender.reading) == 5_000_000
        return passed

    assert asyncio.run(test()) >= 15


@pytest.mark.parametrize("door", ["/v1/responses", "/v1/chat/completions", "/v1/responses/input_tokens"])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "GZIP", "identity"])
def test_every_door_takes_compressed_bodies(house: GatewayThread, door: str, encoding: str) -> None:
    asked = {"messages": [{"role": "user", "content": "Say hello"}]} if "chat" in door else {"input": "Say hello"}
    body = packed(encoding.lower(), json.dumps(asked).encode())
    assert Talk(house.url).post(door, body, {"content-encoding": encoding}).status == 200


def test_another_encoding_is_a_415_that_names_those_that_there_are(house: GatewayThread) -> None:
    answer = Talk(house.url).post("/v1/responses", b"x", {"content-encoding": "br"})
    assert (answer.status, answer.error["code"]) == (415, "unsupported_encoding")
    assert answer.headers["accept-encoding"] == "gzip, deflate, zstd"


@pytest.fixture(scope="module")
def house() -> Iterator[GatewayThread]:
    with running_gateway_server(CONFIG) as server:
        yield server
