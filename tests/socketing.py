"""A WebSocket client for tests of the running gateway: frames as they come, sorted by lane.

Every stream that passes through is shown to the wire oracle, as those over SSE are.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from isthmus.server import lanes
from wire.oracle import check_stream

Json = dict[str, Any]
PATIENCE = 60.0
TERMINAL = ("response.completed", "response.incomplete", "response.failed")


class Socket:
    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.seen: list[Json] = []
        """Every frame, in the order in which they came."""
        self._unread: dict[str, list[Json]] = {}

    def send(self, frame: Any) -> None:
        self.connection.send(frame if isinstance(frame, (str, bytes)) else json.dumps(frame))

    def ask(self, body: Json, lane: str | None = None) -> None:
        self.send({"type": "response.create", **({"stream_id": lane} if lane is not None else {}), **body})

    def next(self) -> Json:
        """The next frame, of whatever lane."""
        raw = self.connection.recv(timeout=PATIENCE)
        assert isinstance(raw, str), "Codex leaves a socket on which a binary frame comes"
        frame: Json = json.loads(raw)
        self.seen.append(frame)
        return frame

    def next_of(self, lane: str = "") -> Json:
        while not self._unread.get(lane):
            frame = self.next()
            self._unread.setdefault(frame.get("stream_id", ""), []).append(frame)
        return self._unread[lane].pop(0)

    def until(self, kind: str, lane: str = "") -> Json:
        while (event := self.next_of(lane))["type"] != kind:
            assert event["type"] not in (*TERMINAL, "error"), event
        return event

    def rest(self, lane: str = "", *, begun: int = 0) -> list[Json]:
        """The events of a response to its end; all of them unless some were read before (`begun`)."""
        events = [self.next_of(lane)]
        while events[-1]["type"] not in (*TERMINAL, "error"):
            events.append(self.next_of(lane))
        assert events[-1]["type"] != "error", events[-1]
        assert all(event.get("stream_id", "") == lane for event in events)
        if not begun:
            check_stream([_plain(event) for event in events])
        return events

    def answer(self, body: Json, lane: str | None = None) -> Json:
        """Ask, and read to the end: the finished Response."""
        self.ask(body, lane)
        return self.rest(lane or "")[-1]["response"]  # type: ignore[no-any-return]

    def refusal(self, lane: str = "") -> Json:
        """The next frame of a lane, which must be an error with all that any client looks for."""
        frame = self.next_of(lane)
        assert frame["type"] == "error", frame
        assert isinstance(frame["status"], int)
        assert {"type", "code", "message", "param"} <= set(frame["error"])
        assert frame["error"]["message"]
        assert all(frame[name] == frame["error"][name] for name in ("code", "message", "param"))
        assert isinstance(frame["sequence_number"], int)
        return frame

    def refused(self, body: Json, lane: str | None = None) -> tuple[int, str, str | None]:
        self.ask(body, lane)
        frame = self.refusal(lane or "")
        return frame["status"], frame["error"]["code"], frame["error"]["param"]

    def closed(self) -> int:
        """The code that it was closed with; whatever still came is in `seen`."""
        try:
            while True:
                self.next()
        except ConnectionClosed as end:
            return 1006 if end.rcvd is None else end.rcvd.code

    def cut(self) -> None:
        """Gone, without a word: as a process that is killed."""
        inner = self.connection.socket
        inner.shutdown(socket.SHUT_RDWR)


@contextmanager
def open_socket(
    url: str,
    path: str = "/v1/responses",
    *,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Iterator[Socket]:
    address = url.replace("http", "ws", 1) + path
    with connect(
        address,
        additional_headers=dict(headers or {}),
        ssl=tls,
        user_agent_header=None,
        max_size=None,
        max_queue=None,
        ping_interval=None,
        close_timeout=5,
        proxy=None,
    ) as connection:
        yield Socket(connection)


def watch_frames(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """What clients send over sockets to a gateway in this process, from now on."""
    seen: list[Json] = []
    read = lanes.read_frame

    def look(raw: bytes, limits: Any) -> Any:
        seen.append(json.loads(raw))
        return read(raw, limits)

    monkeypatch.setattr(lanes, "read_frame", look)
    return seen


def _plain(event: Json) -> Json:
    return {name: value for name, value in event.items() if name != "stream_id"}
