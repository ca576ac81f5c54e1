"""The load: connections that ask one thing after another, and do next to nothing themselves.

In: an address, the bytes of a request, how often. Out: what each call took, when its first word came, the gaps between
the pieces after it, and whether every answer was right. Every answer is looked at for its status, its end and as many
words as it must have; one of each connection is read whole (`answers.py`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, cast

from bench.gateways.answers import ENDS, Door
from bench.gateways.frames import HANDSHAKE, frame, unframed
from bench.gateways.upstream import WORD

PATIENCE: Final = 60.0
_FIRST: Final = WORD.encode()


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as it goes over the wire again and again."""

    port: int
    path: str
    door: Door
    body: bytes
    stream: bool
    words: int
    """How often the upstream's word must come, at least."""
    right: Callable[[bytes], str]
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def wire(self) -> bytes:
        if self.door == "websocket":
            return frame(self.body)
        more = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head = f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncontent-type: application/json\r\n{more}"
        return f"{head}content-length: {len(self.body)}\r\n\r\n".encode() + self.body


@dataclass(slots=True)
class Seen:
    """What all connections of one run saw. Seconds."""

    calls: int = 0
    took: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    gaps: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    hung: bool = False
    """Whether nobody had an answer when the time was over: who is only slow has answered somebody."""
    reconnected: int = 0
    """Connections that were closed after an answer, and opened again."""
    last: bytes = b""
    """The body of the last answer that was read whole."""


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, ask: Ask, seen: Seen, calls: int, *, timed: bool = False) -> None:
        self._ask = ask
        self._wire = ask.wire
        self._seen = seen
        self._left = calls
        self._timed = timed
        self._until = b"\r\n0\r\n\r\n"
        self._held = bytearray()
        self._length = 0
        """Of the whole answer, if its head said so; -1: until it ends."""
        self._last_piece = 0.0
        self._answered = False
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._ask.door == "websocket":
            self._transport.write(HANDSHAKE % (self._ask.path.encode(), self._ask.port))
        else:
            self.ready.set_result(None)

    def begin(self) -> None:
        """Ask once more, or be done."""
        if not self._left:
            self._end()
            return
        self._left -= 1
        self._held.clear()
        self._length, self._last_piece = 0, 0.0
        self._began = time.perf_counter()
        self._transport.write(self._wire)

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            ok = data.startswith(b"HTTP/1.1 101")
            self.ready.set_result(None)
            if not ok:
                self.give_up(f"no WebSocket: {data[:80]!r}")
            return
        if self._timed:
            self._time(data)
        self._held += data
        if self._is_whole(data):
            self._seen.took.append(time.perf_counter() - self._began)
            self._seen.calls += 1
            self._answered = True
            self._look()
            self.begin()

    def _time(self, data: bytes) -> None:
        now = time.perf_counter()
        if self._last_piece:
            self._seen.gaps.append(now - self._last_piece)
            self._last_piece = now
        elif _FIRST in data:
            self._seen.first.append(now - self._began)
            self._last_piece = now

    def _is_whole(self, data: bytes) -> bool:
        if self._ask.door == "websocket":
            return ENDS["websocket"] in self._held[-len(data) - 30 :] and not unframed(self._held)[1]
        if self._length == 0:
            head, ended, _ = self._held.partition(b"\r\n\r\n")
            if not ended:
                return False
            _, found, rest = head.lower().partition(b"\r\ncontent-length:")
            self._length = len(head) + 4 + int(rest.split(b"\r\n", 1)[0]) if found else -1
        return len(self._held) >= self._length if self._length > 0 else self._held.endswith(self._until)

    def _look(self) -> None:
        """At every answer in passing, at the last one of all thoroughly."""
        held = self._held
        if self._ask.door != "websocket" and not held.startswith(b"HTTP/1.1 200"):
            self.give_up(_refusal(bytes(held)))
        elif self._ask.stream and ENDS[self._ask.door] not in held[-20_000:]:
            self._seen.wrong.append("a stream without its end")
        elif held.count(_FIRST) < self._ask.words * 0.9:  # one may stand across two chunks
            self._seen.wrong.append(f"{held.count(_FIRST)} words of {self._ask.words}")
        elif not self._left:
            self._seen.last = body_of(bytes(held), self._ask.door)
            if wrong := self._ask.right(self._seen.last):
                self._seen.wrong.append(wrong)

    def leave(self) -> None:
        """Go away in the middle, as people do."""
        self._left = 0
        self._end()

    def give_up(self, why: str) -> None:
        if self.over.done():
            return
        self._seen.wrong.append(why)
        self._left = 0
        self._end()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
        self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        if self.over.done():
            return
        if self._answered and not self._held:  # it hangs up after an answer: the same again on another connection
            self._seen.reconnected += 1
            self._left += 1
            self._answered = False
            self._again = asyncio.ensure_future(self._reconnect())
        else:
            self._seen.wrong.append(f"the connection ended before its answer: {bytes(self._held[-80:])!r}")
            self.over.set_result(None)

    async def _reconnect(self) -> None:
        self.ready = asyncio.get_running_loop().create_future()
        await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self._ask.port)
        self.begin()


async def connect(ask: Ask, seen: Seen, calls: int, clients: int, *, timed: bool = False) -> list[Connection]:
    """As many connections, open and silent."""
    loop = asyncio.get_running_loop()
    made = [Connection(ask, seen, calls, timed=timed) for _ in range(clients)]
    async with asyncio.timeout(PATIENCE):  # a `TimeoutError` is an `OSError`, as one who is not let in expects
        for each in made:
            await loop.create_connection(lambda each=each: each, "127.0.0.1", ask.port)  # type: ignore[misc]
        await asyncio.gather(*(each.ready for each in made))
    return made


async def run(ask: Ask, calls: int, clients: int, *, timed: bool = False, patience: float = PATIENCE) -> Seen:
    """`calls` on each of `clients` connections."""
    seen = Seen()
    made = await connect(ask, seen, calls, clients, timed=timed)
    await finish(made, seen, patience)
    return seen


async def finish(made: list[Connection], seen: Seen, patience: float = PATIENCE) -> None:
    for each in made:
        if not each.over.done():
            each.begin()
    _, late = await asyncio.wait([each.over for each in made], timeout=patience)
    if late:
        seen.hung = not seen.calls
        for each in made:
            each.give_up(f"no answer within {patience:g} s")


def _refusal(answer: bytes) -> str:
    head, _, body = answer.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].decode("latin-1").removeprefix("HTTP/1.1 ")
    return f"{status}: {body[:200].decode('utf-8', 'replace')}"


def body_of(answer: bytes, door: Door) -> bytes:
    """Without the framing of HTTP; of a WebSocket, a line for each frame."""
    if door == "websocket":
        return b"\n".join(unframed(answer)[0])
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"\r\ncontent-length:" in head.lower():
        return body
    found = bytearray()
    while body:
        size, _, body = body.partition(b"\r\n")
        length = int(size.split(b";")[0], 16)
        if not length:
            break
        found += body[:length]
        body = body[length + 2 :]
    return bytes(found)
