"""The internet as a test wants it: names that lead where it says, one public host, and a note of every connection.

Whoever leaves the process, with whatever library, asks the loop for names and opens its connections through it; so the
loop is where this stands. `PUBLIC` is a real web server with TLS, and every other address is refused after it was
noted: nothing leaves the machine.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

PUBLIC: Final = "93.184.216.34"
CERTIFICATE: Final = Path(__file__).parents[1] / "upstream" / "self_signed.pem"
Answer = bytes | Callable[[bytes], bytes]


class Internet:
    def __init__(self) -> None:
        self.names: dict[str, list[list[str]]] = {}
        """Host → its answers, one for each time that it is asked for; the last one stays."""
        self.looked_up: list[str] = []
        self.connected: list[str] = []
        """Every address that a connection was tried to, the public one too."""
        self.requests: list[bytes] = []
        """What the public host was sent: the head, and the beginning of a body."""
        self.answer: Answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
        self.port = 0
        self.home: set[tuple[str, int]] = set()
        """Servers of the test itself, which are connected to as they are."""

    def leads(self, host: str, *answers: str | list[str]) -> None:
        self.names[host] = [[each] if isinstance(each, str) else each for each in answers]

    def look_up(self, host: str) -> list[str]:
        if _is_literal(host):
            return [host]
        self.looked_up.append(host)
        answers = self.names.get(host)
        if not answers:
            raise socket.gaierror(socket.EAI_NONAME, "the test knows no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def serve(self) -> asyncio.Server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, ssl=context)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(head)
            writer.write(self.answer(head) if callable(self.answer) else self.answer)
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@contextmanager
def an_internet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Internet]:
    """To be opened before the loop runs; `serve` is awaited in it."""
    internet, loop = Internet(), asyncio.SelectorEventLoop
    connect = loop.sock_connect

    async def getaddrinfo(self: Any, host: Any, port: Any, *, family: int = 0, **options: Any) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, int(port or 0)))
            for each in internet.look_up(name)
        ]

    async def sock_connect(self: Any, sock: socket.socket, address: tuple[Any, ...]) -> None:
        if (address[0], address[1]) in internet.home:
            return await connect(self, sock, address)
        internet.connected.append(str(address[0]))
        if address[0] != PUBLIC:
            raise ConnectionRefusedError("the test's own")
        return await connect(self, sock, ("127.0.0.1", internet.port))

    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    monkeypatch.setattr("isthmus.upstream.lean.dial._contexts", {True: trusting})
    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(loop, "sock_connect", sock_connect)
    yield internet


def redirect(to: str, status: int = 302) -> bytes:
    return f"HTTP/1.1 {status} Elsewhere\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()


def _is_literal(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.partition("%")[0])
        except OSError:
            continue
        return True
    return False
