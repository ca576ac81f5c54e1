"""A server that says exactly these bytes, whatever HTTP thinks of them, on a socket and in a thread of its own.

with raw_server(b"HTTP/1.1 200 OK\r\n…", gate, b"zz\r\n") as server: ...
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Part = bytes | threading.Event
PATIENCE = 60.0


@dataclass(slots=True)
class RawServer:
    host: str
    asked: list[bytes] = field(default_factory=list)
    """The requests that came, as they were sent."""

    @property
    def base_url(self) -> str:
        return f"http://{self.host}/v1"


@contextmanager
def raw_server(*parts: Part, endless: bytes = b"") -> Iterator[RawServer]:
    """`parts` are said to everybody who asks: bytes are sent, an event is waited for. `endless`: what is said behind
    them until the other side leaves; without it the connection is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = RawServer(f"127.0.0.1:{listener.getsockname()[1]}")
        thread = threading.Thread(target=_serve, args=(listener, server, parts, endless), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes who waits for a connection
            listener.close()
            thread.join(PATIENCE)


def _serve(listener: socket.socket, server: RawServer, parts: Iterable[Part], endless: bytes) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_answer, args=(connection, server, parts, endless), daemon=True).start()


def _answer(connection: socket.socket, server: RawServer, parts: Iterable[Part], endless: bytes) -> None:
    with suppress(OSError), connection:
        request = _read_request(connection)
        if not request:
            return
        server.asked.append(request)
        for part in parts:
            if isinstance(part, bytes):
                connection.sendall(part)
            else:
                part.wait(PATIENCE)
        while endless:
            connection.sendall(endless)


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while len(body) < int(lengths[0] if lengths else 0):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
