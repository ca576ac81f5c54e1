"""The door: who waits before it is let in at once, whatever else the loop has to do."""

from __future__ import annotations

import asyncio
import errno
import http.client
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from isthmus.config.schema import Server
from isthmus.server.accept import AT_ONCE, Acceptor
from isthmus.server.listen import Listening, listen
from own_time import clock, run_in_own_time, turns
from serving import running_gateway_server

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="its loop has a door of its own")
CERTIFICATE = Path(__file__).parents[1] / "upstream" / "self_signed.pem"


class Guest(asyncio.Protocol):
    def __init__(self, inside: list[Guest]) -> None:
        self._inside = inside

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._inside.append(self)


@contextmanager
def listening() -> Iterator[Listening]:
    opened = listen(Server(port=0))
    try:
        yield opened
    finally:
        opened.close()


def knock(door: Listening, count: int, stack: ExitStack) -> list[socket.socket]:
    """So many connections that the kernel has taken and nobody has accepted."""
    address = door.socket.getsockname()
    return [stack.enter_context(socket.create_connection(address, timeout=60)) for _ in range(count)]


def turns_until_inside(count: int, run: Callable[[Any], Any]) -> int:
    async def enter() -> int:
        inside: list[Guest] = []
        with ExitStack() as stack:
            door = stack.enter_context(listening())
            knock(door, count, stack)
            acceptor = Acceptor(door.socket, lambda: Guest(inside))
            acceptor.open()
            passed = 0
            while len(inside) < count:
                await asyncio.sleep(0)
                passed += 1
            acceptor.close()
            for guest in inside:
                guest.transport.close()
            await turns()
        return passed

    result: int = run(enter())
    return result


def test_a_hundred_newcomers_are_let_in_within_a_few_turns_of_the_loop() -> None:
    """One in each turn, as uvloop does it alone, would be a hundred turns; a turn is long when there is much to do."""
    uvloop = pytest.importorskip("uvloop")
    assert turns_until_inside(100, uvloop.run) <= 10
    assert turns_until_inside(100, asyncio.run) <= 10


def test_a_flood_leaves_the_others_their_turn() -> None:
    assert AT_ONCE + 50 <= 2048
    assert turns_until_inside(AT_ONCE + 50, asyncio.run) <= 20


def test_where_the_system_has_no_room_it_rests_and_looks_again() -> None:
    class Full(socket.socket):
        tried = 0

        def accept(self) -> Any:
            self.tried += 1
            if self.tried == 1:
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    async def enter() -> None:
        clock().stop_clock()
        inside: list[Guest] = []
        with ExitStack() as stack:
            door = stack.enter_context(listening())
            full = stack.enter_context(Full(fileno=door.socket.dup().detach()))
            full.setblocking(False)
            knock(door, 1, stack)
            acceptor = Acceptor(full, lambda: Guest(inside))
            acceptor.open()
            await turns()
            assert (full.tried, inside) == (1, [])
            clock().skip(1)
            await turns()
            assert len(inside) == 1
            acceptor.close()
            inside[0].transport.close()
            await turns()

    run_in_own_time(enter())


def test_a_closed_door_lets_nobody_in() -> None:
    async def enter() -> None:
        inside: list[Guest] = []
        with ExitStack() as stack:
            door = stack.enter_context(listening())
            acceptor = Acceptor(door.socket, lambda: Guest(inside))
            acceptor.open()
            acceptor.close()
            knock(door, 1, stack)
            await turns()
            assert inside == []

    asyncio.run(enter())


def test_a_handshake_that_never_comes_or_is_none_harms_nobody() -> None:
    toml = (
        f'[server]\nport = 0\nhead_timeout = 1\ntls_cert = "{CERTIFICATE}"\ntls_key = "{CERTIFICATE}"\n'
        '[store]\nurl = "memory:"\n[log]\nlevel = "error"\n'
    )
    with running_gateway_server(toml) as gateway:
        port = int(gateway.url.rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=60) as silent,
            socket.create_connection(("127.0.0.1", port), timeout=60) as plain,
        ):
            plain.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while plain.recv(4096):
                pass
            client = http.client.HTTPSConnection("127.0.0.1", port, context=_trusting(), timeout=60)
            client.request("GET", "/health")
            assert client.getresponse().status == 200
            client.close()
            assert silent.recv(1) == b"", "closed when its time was over"


def _trusting() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(CERTIFICATE))


def test_what_is_written_goes_out_at_once() -> None:
    """Small pieces of a stream must not wait for one another."""
    with listening() as door, ExitStack() as stack:
        knock(door, 1, stack)
        door.socket.setblocking(True)
        accepted, _ = door.socket.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
