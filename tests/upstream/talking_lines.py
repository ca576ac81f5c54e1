"""A server that says exactly these bytes, request by request, on connections that stay open."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

CLOSE = b""
"""In place of an answer: the connection is closed."""
Said = bytes | Sequence[bytes]


@dataclass(slots=True)
class Talking:
    scheme: str
    port: int = 0
    asked: list[tuple[int, bytes]] = field(default_factory=list)
    """On which connection, counted from 1, and the request as it came."""
    connections: int = 0
    closed: list[asyncio.Event] = field(default_factory=list)
    """Of each connection: whether the client has closed it."""
    talk: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/v1"

    @property
    def used(self) -> list[int]:
        return [connection for connection, _ in self.asked]


@asynccontextmanager
async def talking(*answers: Said, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> AsyncIterator[Talking]:
    """`answers` are given in turn, to whoever asks; several parts are written one by one. `CLOSE` closes."""
    left = list(answers)
    server = Talking("http" if tls is None else "https")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        number, gone = server.connections, asyncio.Event()
        server.closed.append(gone)
        server.talk.append(writer)
        try:
            while request := await _read(reader):
                server.asked.append((number, request))
                said = left.pop(0)
                for part in [said] if isinstance(said, bytes) else said:
                    if part == CLOSE:
                        return
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            gone.set()
            writer.close()

    async with await asyncio.start_server(serve, host, 0, ssl=tls) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server
        for writer, gone in zip(server.talk, server.closed, strict=True):
            writer.transport.abort()
            await gone.wait()


async def _read(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + await reader.readexactly(int(length[0]) if length else 0)
