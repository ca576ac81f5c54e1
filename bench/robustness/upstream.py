"""A provider that does what a function says, counts what it sends, and notices at once when it is left.

In: a handler, called for each request. Out: `calls`, each with its bytes and, where the gateway closed the
connection before the answer was over, the moment of it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Self, cast

from isthmus.testing.server import stop_accepting

Json = dict[str, Any]
Handler = Callable[["Call"], Awaitable[None]]
DONE: Final = b"data: [DONE]\n\n"
_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Call:
    """One request and the answer to it."""

    def __init__(self, body: Json, size: int, connection: _Connection) -> None:
        self.body = body
        self.size = size
        """Bytes of the request's body."""
        self.sent = 0
        """Bytes of the answer that were given to the socket."""
        self.left = asyncio.Event()
        """The gateway closed the connection before the answer was over."""
        self.left_at = 0.0
        self._connection = connection

    @property
    def words(self) -> str:
        """The text of the last message: checks tell their calls apart by it."""
        content = self.body["messages"][-1]["content"]
        return content if isinstance(content, str) else "".join(part["text"] for part in content)

    async def reply(self, text: str) -> None:
        """A whole answer."""
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        data = json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(data)
        await self.write(head + data)

    async def begin(self) -> None:
        """The head of a stream."""
        await self.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def say(self, data: bytes) -> None:
        """Some bytes of a stream; waits while the gateway does not take them."""
        await self.write(b"%x\r\n%b\r\n" % (len(data), data))

    def say_now(self, data: bytes) -> None:
        """The same without waiting; nothing where the gateway has left."""
        self.sent += len(data)
        self._connection.write_now(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """The stream's ordinary end."""
        await self.say(delta("", finish="stop") + DONE)
        await self.write(b"0\r\n\r\n")

    async def write(self, data: bytes) -> None:
        """Bytes as they are; waits while the gateway does not take them."""
        self.sent += len(data)
        await self._connection.write(data)

    @property
    def last(self) -> bool:
        """Whether nothing else was asked on its connection yet."""
        return self._connection.is_last(self)

    def hang_up(self, *, reset: bool = False) -> None:
        """Close the connection, whatever was still to come."""
        self._connection.close(reset=reset)


class Upstream:
    """Listens on a loopback port of its own choice."""

    def __init__(self, handler: Handler, *, remember: bool = True) -> None:
        """`remember`: whether `calls` are kept; those of a storm would take gigabytes, and the time to search them."""
        self.remember = remember
        self.calls: list[Call] = []
        self.open: set[_Connection] = set()
        self.handler = handler
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        await stop_accepting(self._server)
        self._server.close()
        for connection in list(self.open):
            connection.abort()
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One connection: requests one after another, each answered by a task of its own."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._buffer = bytearray()
        self._needed = 0
        """Bytes that a whole request takes, as soon as its head says so."""
        self._call: Call | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._upstream.open.add(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < self._needed:
            return
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        if self._buffer.startswith(b"GET "):  # which models it has, what it is: it does not say
            del self._buffer[: end + 4]
            self.write_now(_NOT_FOUND)
            return
        size = int(self._buffer[:end].lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        self._needed = end + 4 + size
        if len(self._buffer) >= self._needed:
            body = bytes(self._buffer[end + 4 : self._needed])
            del self._buffer[: self._needed]
            self._needed = 0
            self._call = Call(json.loads(body), size, self)
            if self._upstream.remember:
                self._upstream.calls.append(self._call)
            self._task = asyncio.create_task(self._answer(self._call))

    def eof_received(self) -> None:
        self._is_left()

    def connection_lost(self, error: Exception | None) -> None:
        self._upstream.open.discard(self)
        self._is_left()

    def abort(self) -> None:
        self._transport.abort()

    def close(self, *, reset: bool) -> None:
        if reset:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        else:
            self._transport.close()

    def is_last(self, call: Call) -> bool:
        return self._call is call

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def write_now(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def write(self, data: bytes) -> None:
        if self._transport.is_closing():
            await asyncio.sleep(0)  # the task that writes is about to be told
            return
        self._transport.write(data)
        await self._writable.wait()

    async def _answer(self, call: Call) -> None:
        await self._upstream.handler(call)
        if self._call is call:  # the next request may be here already
            self._call = None

    def _is_left(self) -> None:
        if self._call is not None and self._task is not None and not self._call.left.is_set():
            self._call.left_at = time.monotonic()
            self._call.left.set()
            self._task.cancel()


def delta(text: str = "", *, finish: str | None = None, **more: Any) -> bytes:
    """One chunk of a stream, with everything that real ones carry."""
    choice = {"index": 0, "delta": {"content": text, **more}, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "model"}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"
