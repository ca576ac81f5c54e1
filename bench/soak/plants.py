"""Leaks on purpose, to see that a soak finds them: hooks that keep something of every request, and a line that cuts.

The gateway loads this file by `[hooks]`; none of it is ever in a real one.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Final, cast

KEPT: Final[list[object]] = []


class Memory:
    def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(b"x" * 1_000_000)


class Files:
    def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(os.open("/dev/null", os.O_RDONLY))


class Tasks:
    async def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(asyncio.get_running_loop().create_task(asyncio.sleep(1e6)))


class Threads:
    def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(threading.Thread(target=threading.Event().wait, daemon=True))
        if len(KEPT) % 3 == 0 and len(KEPT) < 6_000:  # seldom enough to go on until the end
            KEPT[-1].start()  # type: ignore[attr-defined]


HOOKS: Final = {"memory": "Memory", "files": "Files", "tasks": "Tasks", "threads": "Threads"}


class Cutting:
    """A line between clients and a gateway that breaks off one answer in twenty, in its first bytes."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._count = 0

    async def __aenter__(self) -> int:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._client, "127.0.0.1", 0, backlog=512)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    def _client(self) -> asyncio.Protocol:
        self._count += 1
        return _Client(self._port, cuts=self._count % 20 == 0)


class _Client(asyncio.Protocol):
    def __init__(self, port: int, *, cuts: bool) -> None:
        self._port = port
        self._cuts = cuts
        self._held: list[bytes] = []
        self._above: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        above = _Above(self._transport, cuts=self._cuts)
        self._above, _ = await asyncio.get_running_loop().create_connection(lambda: above, "127.0.0.1", self._port)
        for data in self._held:
            self._above.write(data)
        if self._transport.is_closing():
            self._above.abort()

    def data_received(self, data: bytes) -> None:
        if self._above is None:
            self._held.append(data)
        else:
            self._above.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._above is not None:
            self._above.abort()


class _Above(asyncio.Protocol):
    def __init__(self, client: asyncio.Transport, *, cuts: bool) -> None:
        self._client = client
        self._cuts = cuts

    def data_received(self, data: bytes) -> None:
        if not self._client.is_closing():
            self._client.write(data[:20] if self._cuts else data)
            if self._cuts:
                self._client.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._client.close()
