"""One client connection: reads requests, and carries answers out to the byte.

A reader runs beside the answer all the time, so a client that leaves is noticed at once, whatever the
answer is waiting for: the answer is then given up and the request told. Nothing here knows the script.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Iterator

import httptools

from isthmus.testing.requests import RecordedRequest
from isthmus.testing.script import Answer, Ending, Part
from isthmus.testing.signals import Gate

Choose = Callable[[RecordedRequest], Awaitable[Answer]]


class Connection:
    """Serves requests one after another until either side ends it."""

    def __init__(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, choose: Choose) -> None:
        self._number = number
        self._reader = reader
        self._writer = writer
        self._choose = choose
        self._arrived: asyncio.Queue[RecordedRequest | None] = asyncio.Queue()
        self._latest: RecordedRequest | None = None
        self._left = asyncio.Event()
        self._ended_here = False

    async def serve(self) -> None:
        """Answer until the client leaves, the answer ends the connection, or the server stops."""
        pump = asyncio.create_task(self._read())
        try:
            while (request := await self._arrived.get()) is not None:
                if not await self._answer(request):
                    break
        finally:
            self._ended_here = True
            pump.cancel()
            await asyncio.gather(pump, return_exceptions=True)
            self._writer.close()
            with contextlib.suppress(OSError):
                await self._writer.wait_closed()

    def abort(self) -> None:
        """Tear it down now: the server stops, nobody is waited for."""
        self._ended_here = True
        self._writer.transport.abort()

    async def _read(self) -> None:
        parser = _RequestReader(self._number, self._take, self._writer)
        with contextlib.suppress(OSError, httptools.HttpParserError):
            while data := await self._reader.read(65536):
                parser.feed(data)
        if not self._ended_here and self._latest is not None:
            self._latest.closed_at = time.monotonic()
            self._latest.closed.set()
        self._left.set()
        self._arrived.put_nowait(None)

    def _take(self, request: RecordedRequest) -> None:
        self._latest = request
        self._arrived.put_nowait(request)

    async def _answer(self, request: RecordedRequest) -> bool:
        """Whether the connection may be used again."""
        answering = asyncio.create_task(self._carry_out(request))
        leaving = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
            return answering.result() if answering.done() else False
        finally:
            answering.cancel()
            leaving.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _carry_out(self, request: RecordedRequest) -> bool:
        answer = await self._choose(request)
        reusable = request.keep_alive and answer.framing != "close"
        try:
            for wait in answer.before:
                if not await self._do(wait, answer):
                    return False
            self._writer.write(_head(answer, reusable))
            for part in () if request.method == "HEAD" else answer.parts:
                if not await self._do(part, answer):
                    return False
            if answer.framing == "chunked" and request.method != "HEAD":
                self._writer.write(b"0\r\n\r\n")
            request.answered_at = time.monotonic()
            request.answered.set()
            await self._writer.drain()
        except ConnectionError:
            return False
        return reusable

    async def _do(self, part: Part, answer: Answer) -> bool:
        """Carry one part out; false when it was the end."""
        match part:
            case bytes():
                for piece in _slices(part, answer.slice):
                    self._writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if answer.framing == "chunked" else piece)
                    await self._writer.drain()
                    await asyncio.sleep(0)
            case Gate():
                part.reached.set()
                await part.opened.waited(None)
            case asyncio.Event():
                await part.wait()
            case Ending.HANG:
                await self._left.wait()
                return False
            case Ending.CUT:
                self._ended_here = True
                return False
            case Ending.RESET:
                self._ended_here = True
                self._reset()
                return False
            case _:
                await asyncio.sleep(part)
        return True

    def _reset(self) -> None:
        """Linger for zero seconds: the kernel then sends RST instead of FIN."""
        raw = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


class _RequestReader:
    """Feeds bytes to the HTTP parser and hands whole requests on."""

    def __init__(self, number: int, take: Callable[[RecordedRequest], None], writer: asyncio.StreamWriter) -> None:
        self._number = number
        self._take = take
        self._writer = writer
        self._parser = httptools.HttpRequestParser(self)
        self.on_message_begin()

    def feed(self, data: bytes) -> None:
        # An upgrade is answered by the script like any other request; what follows it is not HTTP.
        with contextlib.suppress(httptools.HttpParserUpgrade):
            self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._target = b""
        self._headers: list[tuple[str, str]] = []
        self._body: list[bytes] = []

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if any(name.lower() == "expect" and value.lower() == "100-continue" for name, value in self._headers):
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        request = RecordedRequest(
            method=self._parser.get_method().decode("latin-1"),
            target=self._target.decode("latin-1"),
            raw_headers=tuple(self._headers),
            body=b"".join(self._body),
            arrived_at=time.monotonic(),
            connection=self._number,
            keep_alive=self._parser.should_keep_alive(),
        )
        self._take(request)


def _head(answer: Answer, reusable: bool) -> bytes:
    headers = dict(answer.headers)
    given = {name.lower() for name in headers}
    if not given & {"content-length", "transfer-encoding"}:
        if answer.framing == "chunked":
            headers["Transfer-Encoding"] = "chunked"
        elif answer.framing == "length":
            headers["Content-Length"] = str(sum(len(part) for part in answer.parts if isinstance(part, bytes)))
    if not reusable and "connection" not in given:
        headers["Connection"] = "close"
    lines = [f"HTTP/1.1 {answer.status} {_phrase(answer.status)}", *(f"{name}: {headers[name]}" for name in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Scripted"


def _slices(data: bytes, size: int | None) -> Iterator[bytes]:
    if not data:
        return
    step = size or len(data)
    for start in range(0, len(data), step):
        yield data[start : start + step]
