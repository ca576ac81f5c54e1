"""Where attacks take place: a gateway, a hostile provider, and somebody who watches.

An attack is a coroutine that gets the scene and says in a few words what came of it; what is not as it should be goes
into `scene.problems`. How long others had to wait, and how much memory it took, is measured around it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bench.robustness.client import Client, Reply
from bench.robustness.rig import GatewayProcess
from bench.robustness.upstream import Call

SECRET: Final = "sk-live-0Zq7Kd81mXw4Tn92"
HANG: Final = 60.0
"""Seconds after which an answer is called a hang."""
Deed = Callable[[Call], Awaitable[None]]


@dataclass(slots=True)
class Scene:
    gateway: GatewayProcess
    small: bool
    """Fewer and smaller, for a run inside the suite."""
    deeds: dict[str, Deed]
    """What the provider does, by the words it is asked with."""
    problems: list[str] = field(default_factory=list)
    peak: int = 0
    """Most resident memory that was seen."""

    async def post(self, body: Any, path: str = "/v1/responses", **headers: str) -> Reply:
        """One request; a hang is a problem, and status 0."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        try:
            async with asyncio.timeout(HANG), await Client.open(self.gateway.port) as client:
                client._writer.write(
                    f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(data)}\r\n{head}\r\n".encode()
                )
                client._writer.write(data)
                status = await client.head()
                pieces = [piece async for piece in client.pieces()]
                return Reply(status, client.headers, b"".join(pieces))
        except (TimeoutError, OSError, EOFError) as error:
            self.problems.append(f"no answer: {error!r}")
            return Reply(0, {}, b"")

    def no_fault_of_ours(self, reply: Reply, what: str) -> str:
        """The request was served, refused, or told that it is too much: never a bug, never a hang."""
        if reply.status == 500 or reply.status == 0:
            self.problems.append(f"{what}: {reply.status} {reply.body[:200]!r}")
        return f"{what} {reply.status}"

    def expect(self, true: bool, otherwise: str) -> None:
        if not true:
            self.problems.append(otherwise)

    def look(self) -> None:
        self.peak = max(self.peak, self.gateway.memory())


def ended_once(reply: Reply) -> str:
    """The status of the one terminal event of a stream; otherwise what is wrong with it."""
    frames = [line[6:] for line in reply.body.split(b"\n") if line.startswith(b"data: {")]
    ends = [frame for frame in frames if b'"type":"response.' in frame and _is_end(frame)]
    if len(ends) != 1:
        return f"{len(ends)} terminal events"
    return str(json.loads(ends[0])["response"]["status"])


def _is_end(frame: bytes) -> bool:
    return any(b'"type":"response.%b"' % kind in frame[:200] for kind in (b"completed", b"incomplete", b"failed"))
