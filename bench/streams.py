"""A thousand slow streams at once in one worker: all of them end well, none takes much memory, and no token waits.

`python -m bench.streams` starts a gateway as a user does, opens the streams, and lets an upstream say a word on each
every second (`--pace`). Every word carries the moment at which it was sent, so that what the gateway adds to the way is
measured token by token. Memory is what the kernel says of the process: with all streams open and half of what they have
to say said, less what it was before, over their number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from bench.robustness.report import Report, show
from bench.robustness.rig import GatewayProcess, running_gateway, until

MEMORY: Final = 60_000
"""Bytes for each stream."""
_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_FRAME: Final = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "model"}


async def check(streams: int = 1000, deltas: int = 20, pace: float = 1.0, memory: int = MEMORY) -> Report:
    report = Report(f"{streams:,} slow streams in one worker: {deltas} deltas each, one every {pace:g} s")
    raise_file_limit(streams)
    upstream = _Upstream(deltas, pace)
    async with upstream:
        with tempfile.TemporaryDirectory() as folder:
            places = f"max_concurrent = {streams + 100}"
            async with running_gateway(
                Path(folder), upstream.base_url, server=places, connections=streams + 100
            ) as gateway:
                await _measure(report, gateway, upstream, streams, deltas, memory)
    return report


async def _measure(
    report: Report, gateway: GatewayProcess, upstream: _Upstream, streams: int, deltas: int, limit: int
) -> None:
    warm = await _open(gateway, 20)  # what is loaded once is no stream's
    upstream.hurry = True
    await asyncio.gather(*(each.over for each in warm))
    upstream.hurry = False
    if not all(each.completed for each in warm):
        raise RuntimeError(f"not even a few streams are served:\n{gateway.log.read_text()}")
    before, files = gateway.memory(), gateway.files()
    began = time.monotonic()
    readers = await _open(gateway, streams)
    await until(lambda: upstream.open == streams or None, "all streams being open")
    opened = time.monotonic() - began
    await until(lambda: min(len(each.late) for each in readers) >= deltas // 2 or None, "half of every stream")
    grown, cpu = (gateway.memory() - before) / streams, gateway.cpu()
    said, since = sum(len(each.late) for each in readers), time.monotonic()
    await asyncio.gather(*(each.over for each in readers))
    cpu, more = gateway.cpu() - cpu, sum(len(each.late) for each in readers) - said
    complete = sum(each.completed and len(each.late) == deltas for each in readers)
    gaps = sorted(gap for each in readers for gap in each.gaps)
    late = sorted(wait for each in readers for wait in each.late)
    report.add("streams that completed, with every delta", complete, f"all {streams:,}", kept=complete == streams)
    report.add("memory for each stream", f"{grown / 1000:.1f} kB", f"under {limit // 1000} kB", kept=grown < limit)
    report.add("all of them open after", f"{opened:.1f} s")
    report.add("gap between two deltas at the client, p50 and p99", f"{_at(gaps, 0.5)}, {_at(gaps, 0.99)}")
    report.add("a delta's way through, p50 and p99", f"{_at(late, 0.5)}, {_at(late, 0.99)}")
    if more:
        used = cpu / (time.monotonic() - since)
        report.add("CPU time, for each delta and of one core", f"{cpu / more * 1e6:.0f} µs, {used:.0%}")
    upstream.hang_up()  # what the gateway keeps for the next request is no stream's
    await until(lambda: gateway.files() <= files + 5 or None, "the files of all streams being closed")
    report.add("bugs in the log", gateway.tracebacks(), "0", kept=gateway.tracebacks() == 0)


def _at(ordered: list[float], part: float) -> str:
    return f"{ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000:.1f} ms"


def raise_file_limit(streams: int) -> None:
    """Both ends of every stream that are ours, and some more; the gateway raises its own."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = streams * 2 + 500
    if soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


# ── the model ──────────────────────────────────────────────────────────────────────────────────────


class _Upstream:
    """Says a word on each stream once in a while."""

    def __init__(self, deltas: int, pace: float) -> None:
        self.deltas = deltas
        self.pace = pace
        self.hurry = False
        """Whether what is said next is the rest of it."""
        self.open = 0
        self.connections: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    @property
    def base_url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    def hang_up(self) -> None:
        for connection in self.connections:
            connection.close()

    async def __aenter__(self) -> _Upstream:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Saying(self), "127.0.0.1", 0, backlog=4096)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()


class _Saying(asyncio.Protocol):
    def __init__(self, upstream: _Upstream) -> None:
        self._upstream = upstream
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._upstream.connections.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._upstream.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._held += data
        head, ended, rest = self._held.partition(b"\r\n\r\n")
        if not ended:
            return
        size = int((head.lower().partition(b"content-length:")[2] or b"0").split(b"\r\n", 1)[0])
        if len(rest) < size:
            return
        self._held = rest[size:]
        if not head.startswith(b"POST"):  # it is asked about its models
            self._transport.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return
        self._upstream.open += 1
        self._transport.write(_HEAD)
        self._say(0)

    def _say(self, number: int) -> None:
        if self._transport.is_closing():
            self._upstream.open -= 1
        elif number < self._upstream.deltas:
            self._transport.write(_chunk({"content": f"{time.monotonic():.6f} "}))
            pause = 0.0 if self._upstream.hurry else self._upstream.pace
            asyncio.get_running_loop().call_later(pause, self._say, number + 1)
        else:
            self._upstream.open -= 1
            usage = {"prompt_tokens": 1, "completion_tokens": number, "total_tokens": number + 1}
            end = _chunk({}, "stop", usage=usage) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
            self._transport.write(end)


def _chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    data = b"data: " + json.dumps({**_FRAME, "choices": [choice], **more}, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(data), data)


# ── the clients ────────────────────────────────────────────────────────────────────────────────────


@dataclass(eq=False)
class _Reader(asyncio.Protocol):
    """One client, which reads whatever comes."""

    over: asyncio.Future[None]
    late: list[float] = field(default_factory=list)
    """Seconds that each delta took from the upstream to here."""
    gaps: list[float] = field(default_factory=list)
    completed: bool = False
    _held: bytes = b""
    _last: float = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        body = json.dumps({"input": "hi", "stream": True}).encode()
        head = b"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n"
        cast(asyncio.Transport, transport).write(
            head + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        *lines, self._held = (self._held + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and b'"response.output_text.delta"' in line:
                with suppress(ValueError):
                    self.late.append(now - float(json.loads(line[6:])["delta"]))
                if self._last:
                    self.gaps.append(now - self._last)
                self._last = now
            elif line.startswith(b"event: response.completed"):
                self.completed = True

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


async def _open(gateway: GatewayProcess, count: int) -> list[_Reader]:
    loop = asyncio.get_running_loop()
    readers = [_Reader(loop.create_future()) for _ in range(count)]
    for reader in readers:
        await loop.create_connection(lambda reader=reader: reader, gateway.host, gateway.port)  # type: ignore[misc]
    return readers


def main() -> None:
    parser = argparse.ArgumentParser(description="Many slow streams at once in one worker.")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--deltas", type=int, default=20)
    parser.add_argument("--pace", type=float, default=1.0)
    given = parser.parse_args()
    report = asyncio.run(check(given.streams, given.deltas, given.pace))
    print(show(report))
    sys.exit(1 if report.broken else 0)


if __name__ == "__main__":
    main()
