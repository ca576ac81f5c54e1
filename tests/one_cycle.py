"""One request on a connection, without a socket: what is written is noted."""

from __future__ import annotations

from typing import Any

from isthmus.server.cycle import Cycle, Flow


class Line:
    """A transport that notes what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Scene:
    def __init__(self, **facts: Any) -> None:
        self.line: Any = Line()
        self.flow = Flow(self.line)
        self.over = 0
        given = {"sends_body": True, "keep_alive": True, "expects": False, **facts}
        self.cycle = Cycle(self.line, self.flow, self._end, **given)

    def _end(self) -> None:
        self.over += 1

    @property
    def told(self) -> bytes:
        return b"".join(self.line.writes)
