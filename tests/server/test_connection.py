"""A connection's bounds: what is not a body has a size and a time, and whoever has asked is never pushed out."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from isthmus.config.schema import Server
from isthmus.errors import IsthmusError
from isthmus.server.connection import REFUSED, Connection
from own_time import clock, run_in_own_time, turns
from raw_http import RawAnswer, connect, parse, send_raw
from serving import running_gateway_server
from talking import Talk

CONFIG = '[server]\nport = 0\n{}\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
ASKED = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POSTED = b"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n"


# ── over sockets ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [100_000, 40_000_000], ids=["a large head", "40 MB of headers"])
def test_a_head_that_is_too_large_is_a_431(size: int) -> None:
    with running_gateway_server(CONFIG.format("")) as gateway:
        line = b"X-Filler: " + b"x" * 10_000 + b"\r\n"
        answer = send_raw(gateway.url, ASKED, *[line] * (size // len(line)), b"\r\n")
        assert (answer.status, answer.error["code"]) == (431, "head_too_large")
        assert Talk(gateway.url).get("/health").status == 200


def test_one_that_comes_in_a_single_piece_is_refused_and_closed_as_well() -> None:
    with running_gateway_server(CONFIG.format("max_head = 2000")) as gateway:
        answer = send_raw(gateway.url, ASKED + b"X: " + b"x" * 3_000 + b"\r\n\r\n")
        assert (answer.status, answer.error["code"]) == (431, "head_too_large")
        assert answer.headers["connection"] == "close"


def test_a_head_within_the_limit_is_served() -> None:
    with running_gateway_server(CONFIG.format("")) as gateway:
        answer = send_raw(gateway.url, ASKED + b"Connection: close\r\nX: " + b"x" * 60_000 + b"\r\n\r\n")
        assert answer.status == 200


def test_a_head_that_never_comes_is_a_408() -> None:
    with running_gateway_server(CONFIG.format("head_timeout = 2")) as gateway:
        answer = send_raw(gateway.url, ASKED + b"X-Endless: ")
        assert (answer.status, answer.headers["connection"]) == (408, "close")
        assert answer.error["code"] == "request_timeout"


def test_what_is_not_http_is_told_so_in_the_usual_shape() -> None:
    with running_gateway_server(CONFIG.format("")) as gateway:
        answer = send_raw(gateway.url, b"SSH-2.0-OpenSSH_9.6\r\n\r\n")
        assert (answer.status, answer.error["code"]) == (400, "invalid_http")


def test_a_trailer_is_no_header() -> None:
    """Else it could show a key, or name a host, after both were looked at."""
    with running_gateway_server(CONFIG.format('api_keys = ["sk-one"]')) as gateway:
        body = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n{}\r\n0\r\nx-api-key: sk-one\r\n\r\n"
        assert send_raw(gateway.url, POSTED + body).status == 401


def test_a_client_that_would_rather_speak_http_2_is_served_in_http_1() -> None:
    """Java's own client asks so; the parser would take its body for HTTP/2 already."""
    body = b'{"input": "Say hello, h2c"}'
    wish = b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQBAAAA\r\n"
    with running_gateway_server(CONFIG.format("")) as gateway:
        answer = send_raw(gateway.url, POSTED + wish + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert answer.status == 200
        assert b'"status":"completed"' in answer.body


def test_a_connection_that_has_asked_for_nothing_makes_room() -> None:
    with running_gateway_server(CONFIG.format("max_connections = 2")) as gateway:
        idle = [connect(gateway.url) for _ in range(2)]
        try:
            for each in idle:
                each.sendall(ASKED + b"\r\n")
                assert each.recv(12) == b"HTTP/1.1 200"  # both are counted, and idle from now on
            assert Talk(gateway.url).get("/health").status == 200
        finally:
            for each in idle:
                each.close()


# ── bit by bit, in time of its own ─────────────────────────────────────────────────────────────────────


class Line(asyncio.Transport):
    """What a connection writes to; it loses the connection when it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False
        self.protocol: asyncio.Protocol

    def write(self, data: Any) -> None:
        assert not self.closed
        self.written += data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def is_closing(self) -> bool:
        return self.closed

    def can_write_eof(self) -> bool:
        return False  # as with TLS: then it is closed at once

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class House:
    """Connections of one server, whose app says `ok` when it may."""

    def __init__(self, limits: Server) -> None:
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.refused: list[IsthmusError] = []
        self.headers: list[Any] = []
        self._state = ServerState()
        kind = Connection.within(limits)
        self._config = uvicorn.Config(
            self.app, http=kind, interface="asgi3", lifespan="off", log_config=None, timeout_keep_alive=75
        )
        self._config.load()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        self.headers = scope["headers"]
        if REFUSED in scope:
            self.refused.append(scope[REFUSED])
        await self.may_answer.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    def open(self) -> tuple[Connection, Line]:
        line = Line()
        line.protocol = connection = self._config.http_protocol_class(
            config=self._config, server_state=self._state, app_state={}
        )
        connection.connection_made(line)
        return connection, line


def told(line: Line) -> RawAnswer:
    return parse(line.written)


def in_house(test: Callable[[House], Awaitable[None]], **limits: Any) -> None:
    async def run() -> None:
        clock().stop_clock()
        await test(House(Server(**{"max_head": 500, "head_timeout": 30.0, **limits})))

    run_in_own_time(run())


def test_silence_is_closed_without_a_word() -> None:
    async def test(house: House) -> None:
        _, line = house.open()
        clock().skip(29)
        await turns()
        assert not line.closed
        clock().skip(1)
        await turns()
        assert (line.closed, line.written) == (True, b"")

    in_house(test)


def test_a_trickled_head_is_given_up_after_its_time_however_it_comes() -> None:
    async def test(house: House) -> None:
        connection, line = house.open()
        for byte in ASKED[:30]:
            clock().skip(0.99)
            await turns(5)
            connection.data_received(bytes([byte]))
        assert not line.closed
        clock().skip(1)
        await turns()
        assert (told(line).status, line.closed) == (408, True)

    in_house(test)


def test_the_next_head_on_the_same_connection_has_its_own_time() -> None:
    async def test(house: House) -> None:
        connection, line = house.open()
        connection.data_received(ASKED + b"\r\n")
        await turns()
        assert told(line).status == 200
        line.written = b""
        clock().skip(60)
        await turns()
        assert not line.closed, "an idle connection is kept"
        connection.data_received(b"GET /")
        clock().skip(31)
        await turns()
        assert (told(line).status, line.closed) == (408, True)

    in_house(test)


def test_a_head_that_came_in_one_piece_is_measured_without_its_body() -> None:
    async def test(house: House) -> None:
        connection, line = house.open()
        connection.data_received(POSTED + b"Content-Length: 5000\r\n\r\n" + b"x" * 5000)
        await turns()
        assert (told(line).status, house.refused) == (200, [])
        connection.data_received(POSTED + b"X: " + b"x" * 500 + b"\r\n\r\n")
        await turns()
        assert [error.code for error in house.refused] == ["head_too_large"]

    in_house(test)


@pytest.mark.parametrize("more", [b"X-Trailer: endless\r\n", b"1;" + b"e" * 100], ids=["trailers", "chunk extensions"])
def test_what_frames_a_body_is_bounded_too(more: bytes) -> None:
    async def test(house: House) -> None:
        house.may_answer.clear()
        connection, line = house.open()
        connection.data_received(POSTED + b"Transfer-Encoding: chunked\r\n\r\n")
        if more.startswith(b"X"):
            connection.data_received(b"1\r\nx\r\n0\r\n")
        for _ in range(30):
            connection.data_received(more)
        await turns()
        assert line.closed
        assert line.written == b"", "an answer is under way: nothing may be written into it"

    in_house(test)


def test_a_body_in_the_smallest_chunks_is_within_bounds() -> None:
    async def test(house: House) -> None:
        house.may_answer.clear()
        connection, line = house.open()
        connection.data_received(POSTED + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(2000):
            connection.data_received(b"1\r\nx\r\n")
        assert not line.closed

    in_house(test)


def test_the_rest_of_a_body_that_was_answered_is_not_read_for_ever() -> None:
    async def test(house: House) -> None:
        connection, line = house.open()
        connection.data_received(POSTED + b"Content-Length: 1000000\r\n\r\nx")
        await turns()
        assert (told(line).status, line.closed) == (200, False)
        for _ in range(31):
            clock().skip(1)
            await turns(5)
            connection.data_received(b"x")
        assert line.closed

    in_house(test)


def test_the_connection_is_kept_when_the_rest_comes() -> None:
    async def test(house: House) -> None:
        connection, line = house.open()
        connection.data_received(POSTED + b"Content-Length: 3\r\n\r\nx")
        await turns()
        connection.data_received(b"xx")
        line.written = b""
        connection.data_received(ASKED + b"\r\n")
        await turns()
        assert (told(line).status, line.closed) == (200, False)

    in_house(test)


def test_whoever_waits_for_an_answer_is_not_pushed_out() -> None:
    async def test(house: House) -> None:
        house.may_answer.clear()
        asking, first = house.open()
        asking.data_received(ASKED + b"\r\n")
        half, second = house.open()
        half.data_received(POSTED + b"Content-Length: 9\r\n\r\nx")
        await turns()
        third, line = house.open()
        await turns()
        assert (first.closed, second.closed, line.closed) == (False, True, False)
        third.data_received(ASKED + b"\r\n")
        _, fourth = house.open()
        await turns()
        assert (first.closed, line.closed) == (False, False)
        assert (told(fourth).status, told(fourth).error["code"]) == (503, "server_is_overloaded")

    in_house(test, max_connections=2)


def test_the_fields_of_one_that_is_open_share_their_names_with_those_of_all_others() -> None:
    """Python shares the names of thirty; a dict with more of them is one of its own, and takes a kilobyte."""

    async def test(house: House) -> None:
        connection, _ = house.open()
        house.may_answer.clear()
        connection.data_received(ASKED + b"\r\n")
        await turns()
        assert len(vars(connection)) <= 30

    in_house(test)
