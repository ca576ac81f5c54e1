"""Streams that are only listened to: thousands of them, at a few microseconds for each word.

In: requests, sent one after the other. Out: the gaps between the pieces of each answer, and whether every answer was
right. One thread asks the kernel who has something to read, and reads it: whoever counts how many streams a gateway
holds must hold more of them himself, on the core that the upstream has, too.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Final, Self

from bench.gateways.client import Ask, body_of
from bench.gateways.upstream import WORD

CONNECTING: Final = 10.0
"""Seconds within which a gateway has to take a connection."""
_FIRST: Final = WORD.encode()
_END: Final = b"\r\n0\r\n\r\n"
_OK: Final = b"HTTP/1.1 200"


@dataclass(slots=True, eq=False)
class _Stream:
    ask: Ask
    socket: socket.socket
    held: bytearray = field(default_factory=bytearray)
    last: float = 0.0
    """When its last piece came, from the first word on."""


class Listeners:
    """Everybody who listens; the thread begins and ends with the `with`."""

    def __init__(self) -> None:
        self.gaps: list[float] = []
        """Seconds. Whoever wants those of a time clears it at the beginning."""
        self._streams: dict[int, _Stream] = {}
        self._ended: list[_Stream] = []
        self._epoll = select.epoll()
        self._silent = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._listen, name="listeners", daemon=True)

    def begin(self, ask: Ask) -> None:
        """One more stream. An `OSError` says that it is not let in."""
        made = socket.create_connection(("127.0.0.1", ask.port), timeout=CONNECTING)
        made.sendall(ask.wire)
        made.setblocking(False)
        self._silent.clear()
        self._streams[made.fileno()] = _Stream(ask, made)
        self._epoll.register(made.fileno(), select.EPOLLIN)

    def right(self, patience: float) -> int:
        """How many have ended as they should, when all have ended or the time is over. Blocks."""
        self._silent.wait(patience)
        return sum(_is_right(each) for each in list(self._ended))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True
        self._thread.join()
        for each in self._streams.values():
            each.socket.close()
        self._epoll.close()

    def _listen(self) -> None:
        buffer = bytearray(1 << 18)
        view = memoryview(buffer)
        while not self._over:
            for file, _ in self._epoll.poll(0.05):
                stream = self._streams[file]
                try:
                    size = stream.socket.recv_into(buffer)
                except BlockingIOError:
                    continue
                except OSError:
                    size = 0
                stream.held += view[:size]
                self._note(stream)
                if not size or stream.held.endswith(_END) or not stream.held.startswith(_OK):
                    self._end(stream, file)

    def _note(self, stream: _Stream) -> None:
        now = time.perf_counter()
        if stream.last:
            self.gaps.append(now - stream.last)
            stream.last = now
        elif _FIRST in stream.held:
            stream.last = now

    def _end(self, stream: _Stream, file: int) -> None:
        self._epoll.unregister(file)
        del self._streams[file]
        stream.socket.close()
        self._ended.append(stream)
        if not self._streams:
            self._silent.set()


def _is_right(stream: _Stream) -> bool:
    held = bytes(stream.held)
    return held.startswith(_OK) and held.endswith(_END) and not stream.ask.right(body_of(held, stream.ask.door))
