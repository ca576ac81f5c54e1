"""A socket's bounds: messages have a size, a time and a pace, and nothing piles up for a client that does not read."""

from __future__ import annotations

import gc
import json
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from isthmus.server.upgraded import MAX_FRAGMENTS, Coming, Upgraded
from raw_http import connect
from serving import GatewayThread, running_gateway_server
from waiting import until

CONFIG = '[server]\nport = 0\n{}\n[websocket]\nping = 0\n[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
ASKED = (
    b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
TEXT, CONTINUED, CLOSE, PING, PONG, FIN = 1, 0, 8, 9, 10, 0x80


def frame(opcode: int, data: bytes = b"", *, declared: int | None = None) -> bytes:
    """One frame as a client sends it; it may declare more than it brings."""
    mask = b"\x1a\x2b\x3c\x4d"
    size = len(data) if declared is None else declared
    head = struct.pack("!BB", opcode, 0x80 | 127) + struct.pack("!Q", size)
    return head + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))


@contextmanager
def upgraded(gateway: GatewayThread) -> Iterator[socket.socket]:
    with connect(gateway.url) as client:
        client.sendall(ASKED)
        assert b"101 Switching" in client.recv(4096)
        yield client


def frames(client: socket.socket) -> Iterator[tuple[int, bytes]]:
    """What comes, as opcode and data, until it is closed."""
    stream = client.makefile("rb")
    while head := stream.read(2):
        size = head[1]
        if size > 125:
            (size,) = struct.unpack("!H" if size == 126 else "!Q", stream.read(2 if size == 126 else 8))
        yield head[0] & 0x0F, stream.read(size)


def last_words(client: socket.socket) -> tuple[str, int]:
    """The code of the error frame, and the one that the socket was closed with."""
    *told, (opcode, data) = frames(client)
    assert opcode == CLOSE
    error = json.loads(told[-1][1])["error"]["code"] if told and told[-1][0] == TEXT else ""
    return error, struct.unpack("!H", data[:2])[0]


def test_a_message_that_is_too_large_is_told_so_before_it_has_come() -> None:
    with running_gateway_server(CONFIG.format("max_body = 1000")) as gateway, upgraded(gateway) as client:
        client.sendall(frame(FIN | TEXT, b"x" * 100, declared=1001))
        assert last_words(client) == ("payload_too_large", 1009)


def test_so_is_one_in_many_pieces() -> None:
    with running_gateway_server(CONFIG.format("max_body = 1000")) as gateway, upgraded(gateway) as client:
        client.sendall(frame(TEXT, b"x" * 600) + frame(CONTINUED, b"x" * 600))
        assert last_words(client) == ("payload_too_large", 1009)


def test_so_is_one_in_pieces_that_hold_nothing() -> None:
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        client.sendall(frame(TEXT, b"x") + frame(CONTINUED) * (MAX_FRAGMENTS + 1))
        assert last_words(client) == ("payload_too_large", 1009)


@pytest.mark.parametrize(
    "first", [frame(FIN | TEXT, b"x", declared=1000), frame(TEXT, b"x")], ids=["frame", "fragment"]
)
def test_a_message_that_stops_coming_is_given_up(first: bytes) -> None:
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        client.sendall(first)
        until(lambda: _coming(gateway))
        gateway.skip(30)
        client.sendall(b"x" if first[0] != TEXT else frame(FIN | PING))  # a sign of life does not help
        until(lambda: _coming(gateway) > 1 or first[0] == TEXT)
        gateway.skip(31)
        assert last_words(client) == ("request_timeout", 1008)


def test_one_that_comes_slowly_enough_is_waited_for() -> None:
    body = json.dumps({"type": "response.create", "model": "demo/demo", "input": "x" * 400_000, "generate": False})
    whole = frame(FIN | TEXT, body.encode())
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        for at in range(0, len(whole), 300_000):
            client.sendall(whole[at : at + 300_000])
            if at == 0:
                until(lambda: _coming(gateway) >= 290_000)
                gateway.skip(59)
        assert json.loads(next(frames(client))[1])["type"] == "response.created"


def test_an_idle_socket_is_not_timed() -> None:
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        coming = frames(client)
        for word in (b"1", b"2"):
            client.sendall(frame(FIN | PING, word))
            assert next(coming) == (PONG, word)
            gateway.skip(200)


def test_what_is_half_sent_shares_one_sum_and_the_oldest_goes() -> None:
    limit = CONFIG.format("max_bodies = 150000\nmax_body = 1000000")
    with running_gateway_server(limit) as gateway, upgraded(gateway) as old, upgraded(gateway) as new:
        half = frame(FIN | TEXT, b"x" * 100_000, declared=200_000)
        old.sendall(half)
        until(lambda: _coming(gateway) >= 100_000)
        new.sendall(half)
        assert last_words(old) == ("server_is_overloaded", 1013)
        assert _coming(gateway) >= 100_000


def test_a_client_that_reads_no_pongs_gets_no_more_of_them() -> None:
    """Else they would pile up here: a ping is free."""
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        client.settimeout(1)
        pings = frame(FIN | PING, b"x" * 100) * 1000
        for _ in range(200):
            client.sendall(pings)
        (held,) = _each(gateway)
        until(lambda: held.conn.reader.buffer == b"")
        assert held.transport.get_write_buffer_size() < 1_000_000


NO_FRAMES = {
    "unmasked": b"\x81\x01x",
    "an unknown kind": frame(FIN | 3, b"x"),
    "the rest of nothing": frame(FIN | CONTINUED, b"x"),
}


@pytest.mark.parametrize("bad", NO_FRAMES.values(), ids=NO_FRAMES.keys())
def test_what_is_no_frame_closes_the_socket(bad: bytes) -> None:
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        client.sendall(bad)
        assert client.recv(4)[0] == 0x88


def test_text_that_is_none_closes_the_socket() -> None:
    with running_gateway_server(CONFIG.format("")) as gateway, upgraded(gateway) as client:
        client.sendall(frame(FIN | TEXT, b"\xff\xfe"))
        assert last_words(client) == ("", 1007)


def test_the_sum_is_kept() -> None:
    coming = Coming(100)
    one, two = object(), object()
    for who, size in ((one, 10), (two, 20), (one, 30), (two, 0)):
        coming.count(who, size)  # type: ignore[arg-type]
    assert coming.size == 30


def _each(gateway: GatewayThread) -> list[Upgraded]:
    found = [each for each in gc.get_objects() if issubclass(type(each), Upgraded) and each.loop is gateway._loop]
    return [each for each in found if not each.disconnected]


def _coming(gateway: GatewayThread) -> int:
    return max((each.coming.size for each in _each(gateway)), default=0)
