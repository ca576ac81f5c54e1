"""Leaks on purpose, to see that a soak finds them: hooks that keep something of every request, and a line that cuts.

The gateway loads this file by `[hooks]`; none of it is ever in a real one.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import Any, Final

KEPT: Final[list[object]] = []


class Memory:
    def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(b"x" * 400_000)


class Files:
    def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(os.open("/dev/null", os.O_RDONLY))


class Tasks:
    async def before_plan(self, request: dict[str, Any], context: Any) -> None:
        KEPT.append(asyncio.get_running_loop().create_task(asyncio.sleep(1e6)))


class Threads:
    def before_plan(self, request: dict[str, Any], context: Any) -> None:
        if len(KEPT) < 300:
            KEPT.append(threading.Thread(target=threading.Event().wait, daemon=True))
            KEPT[-1].start()  # type: ignore[attr-defined]


HOOKS: Final = {"memory": "Memory", "files": "Files", "tasks": "Tasks", "threads": "Threads"}


class Cutting:
    """A line between clients and a gateway that breaks off one answer in forty."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._count = 0

    async def __aenter__(self) -> int:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0, backlog=512)
        return int(self._server.sockets[0].getsockname()[1])

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._count += 1
        cuts = self._count % 40 == 0
        above, to = await asyncio.open_connection("127.0.0.1", self._port)

        async def pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter, most: float) -> None:
            sent = 0
            while (data := await source.read(65536)) and sent < most:
                sink.write(data[: 300 if most < 1e9 else len(data)])
                sent += len(data)
            sink.transport.abort()
            to.transport.abort()

        try:
            await asyncio.gather(pipe(reader, to, 1e12), pipe(above, writer, 200 if cuts else 1e12))
        except OSError:
            writer.transport.abort()
