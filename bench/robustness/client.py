"""A plain HTTP/1.1 client on one raw connection: it can stop reading, leave in any way, and send any bytes."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Self

Json = dict[str, Any]
TERMINAL: Final = ("response.completed", "response.incomplete", "response.failed")
KEY: Final[ContextVar[str]] = ContextVar("the key that clients of this task show", default="")


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """One connection to the gateway, used for one request after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._headers: dict[str, str] = {}

    @classmethod
    async def open(cls, port: int, host: str = "127.0.0.1") -> Self:
        return cls(*await asyncio.open_connection(host, port))

    async def request(self, method: str, path: str, body: Any = None) -> Reply:
        """A whole answer."""
        status = await self.send(method, path, body)
        pieces = [piece async for piece in self.pieces()]
        return Reply(status, self._headers, b"".join(pieces))

    async def send(self, method: str, path: str, body: Any = None) -> int:
        """Send a request and read the head of its answer; gives the status."""
        await self.write(method, path, body)
        return await self.head()

    async def write(self, method: str, path: str, body: Any = None) -> None:
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        key = f"authorization: Bearer {KEY.get()}\r\n" if KEY.get() else ""
        head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{key}content-length: {len(data)}\r\n"
        self._writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + data)
        await self._writer.drain()

    async def head(self) -> int:
        lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self._headers = {}
        for line in lines[1:-2]:
            name, _, value = line.partition(":")
            self._headers[name.lower()] = value.strip()
        return int(lines[0].split()[1])

    @property
    def headers(self) -> Mapping[str, str]:
        return self._headers

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes; an early end raises `IncompleteReadError`."""
        if self._headers.get("transfer-encoding") == "chunked":
            while size := int(await self._reader.readuntil(b"\r\n"), 16):
                yield await self._reader.readexactly(size)
                await self._reader.readexactly(2)
            await self._reader.readexactly(2)
        elif length := int(self._headers.get("content-length", 0)):
            yield await self._reader.readexactly(length)

    async def more(self) -> bool:
        """Take what has come, whatever it is; false at the end."""
        return bool(await self._reader.read(65536))

    async def frames(self) -> AsyncIterator[bytes]:
        """The data of each SSE frame; comments are left out."""
        rest = b""
        async for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n\n")
            for frame in whole:
                for line in frame.split(b"\n"):
                    if line.startswith(b"data: "):
                        yield line[6:]

    async def events(self) -> AsyncIterator[Json]:
        async for data in self.frames():
            if data != b"[DONE]":
                yield json.loads(data)

    def leave(self, *, reset: bool = False) -> None:
        """Close the connection, in good order or with a reset, whatever was still to come."""
        if reset:
            raw = self._writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()
        await asyncio.sleep(0)  # the socket itself is closed in the loop's next turn


async def fetch(port: int, method: str, path: str, body: Any = None) -> Reply:
    """One request on a connection of its own."""
    async with await Client.open(port) as client:
        return await client.request(method, path, body)


def text_of(response: Json) -> str:
    """The words of a response, from its items."""
    return "".join(
        part.get("text", "") for item in response["output"] if item["type"] == "message" for part in item["content"]
    )
