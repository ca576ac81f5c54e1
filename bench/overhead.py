"""What the gateway adds: CPU time per request and per streamed delta, and latency against a direct call.

Run `python -m bench.overhead`. The upstream is a process of its own that answers from memory; direct calls to it and
calls through the gateway take turns, so that both see the same weather. CPU time is the gateway's own, of all its
threads, as the kernel counts it. With two or more cores the gateway has one to itself.

`--against <tree>/src` runs the gateway of another tree beside this one's and shows the CPU time of both; `--traces`
runs one without traces beside one with them. Both are started several times, and take turns in short slices, now the
one first, now the other: whatever else the machine does meets both, so that the ratio of two slices that stand side by
side is steadier than either. What is told is the middle of all these ratios, and between which bounds it lies with a
certainty of 95 %.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.robustness.report import percentile, table
from bench.robustness.rig import GatewayProcess, running_gateway

DELTAS: Final = 200
_CLIENTS: Final = 16
_SLICE: Final = 6
"""Of the calls that one client makes, the part that each of many makes."""
_STARTS: Final = 8
"""How often both of two gateways are started that are compared."""
_WRITTEN: Final = 0.7
"""Seconds after which traces are written that a request has left: they are gathered for a moment first."""


@dataclass(slots=True)
class Kind:
    """One kind of call, direct and through the gateway, and what was measured."""

    name: str
    path: str
    model: str
    stream: bool
    calls: int = 50
    """In each round."""
    direct: list[float] = field(default_factory=list)
    through: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    """Seconds for each call, a figure for each round; with many clients likewise."""
    cpu_busy: list[float] = field(default_factory=list)


def kinds() -> list[Kind]:
    return [
        Kind("Responses, whole", "/v1/responses", "text-10-0", False),
        Kind(f"Responses, {DELTAS} deltas in one piece", "/v1/responses", f"text-{DELTAS}-0", True, calls=15),
        Kind(f"Responses, {DELTAS} deltas, 1 ms apart", "/v1/responses", f"text-{DELTAS}-1", True, calls=3),
        Kind("Chat, whole", "/v1/chat/completions", "text-10-0", False),
        Kind(f"Chat, {DELTAS} deltas, 1 ms apart", "/v1/chat/completions", f"text-{DELTAS}-1", True, calls=3),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.overhead", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="of slices that take turns")
    parser.add_argument("--store", default="", help="`memory:`; default: SQLite in a new file")
    parser.add_argument("--against", type=Path, help="`src` of another tree, whose gateway takes turns with this one")
    parser.add_argument("--traces", action="store_true", help="compare with a gateway whose traces are off")
    arguments = parser.parse_args()
    other: dict[str, Any] = {}
    if arguments.against is not None:
        other["source"] = arguments.against.resolve()
    if arguments.traces:
        other["trace"] = 'capture = "off"'
    if other:
        print("\n".join(show_both(asyncio.run(compare(arguments.rounds, arguments.store, other)))))
        return
    measured = asyncio.run(measure(arguments.rounds, arguments.store))
    print("\n".join(show(measured)))


async def measure(rounds: int, store: str = "", calls: int | None = None) -> list[Kind]:
    """`calls` of each kind in a round, in place of as many as give steady figures."""
    measured = kinds()
    with tempfile.TemporaryDirectory() as folder, _upstream() as port:
        base = f"http://127.0.0.1:{port}/v1"
        async with running_gateway(Path(folder), base, store=store, core=0) as gateway:
            for kind in measured:
                await _round(kind, gateway, port, calls or 3)
            measured = kinds()  # what was measured so far was only to warm up
            for _ in range(rounds):
                for kind in measured:
                    await _round(kind, gateway, port, calls or kind.calls)
            for kind in measured:
                await _busy(kind, gateway, calls or kind.calls)
    return measured


async def compare(rounds: int, store: str, other: dict[str, Any], share: float = 1.0) -> list[tuple[Kind, Kind]]:
    """CPU time of a gateway with other options, and of this tree's usual one, which took turns. Both are started anew
    several times: two processes of the same code differ by some percent for as long as they live."""
    ours, theirs = kinds(), kinds()
    starts = min(_STARTS, rounds)
    with _upstream() as port:
        for start in range(starts):
            base = f"http://127.0.0.1:{port}/v1"
            await _compare_once(range(start, rounds, starts), base, store, other, share, ours, theirs)
    return [*zip(theirs, ours, strict=True)]


async def _compare_once(
    rounds: Sequence[int],
    base: str,
    store: str,
    other: dict[str, Any],
    share: float,
    ours: list[Kind],
    theirs: list[Kind],
) -> None:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        async with (
            running_gateway(Path(one), base, store=store) as here,
            running_gateway(Path(two), base, store=store, **other) as there,
        ):
            for kind in (*kinds(), *kinds()):  # to warm up
                for gateway in (here, there):
                    await _call_at_once(kind, gateway, max(1, round(10 * share)), 1)
            await asyncio.sleep(_WRITTEN)
            for number in rounds:
                for mine, its in zip(ours, theirs, strict=True):
                    sides = [(mine, here), (its, there)]
                    for clients, part in ((1, 1), (_CLIENTS, _SLICE)):
                        calls = max(1, round(mine.calls * share / part))
                        await _pair(sides[:: -1 if number // _STARTS % 2 else 1], calls, clients)


async def _pair(sides: list[tuple[Kind, GatewayProcess]], calls: int, clients: int) -> None:
    """A slice of each, one right behind the other; what both have left behind is written before they are looked at."""
    before = [gateway.cpu() for _, gateway in sides]
    for kind, gateway in sides:
        await _call_at_once(kind, gateway, calls, clients)
    await asyncio.sleep(_WRITTEN)
    for (kind, gateway), earlier in zip(sides, before, strict=True):
        took = kind.cpu if clients == 1 else kind.cpu_busy
        took.append((gateway.cpu() - earlier) / calls / clients)


@dataclass(frozen=True, slots=True)
class Ratio:
    """The middle of the ratios of pairs, and between which bounds that lies (95 %)."""

    middle: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.middle:.3f} ({self.low:.3f} to {self.high:.3f})"


def ratio_of(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """Of slices that stood side by side. How they are spread is not asked: the bounds are two of the ratios
    themselves, by how often a fair coin falls."""
    ratios = sorted(mine / its for its, mine in zip(before, after, strict=True))
    count = len(ratios)
    beyond = max(0, math.floor((count - 1.96 * math.sqrt(count)) / 2))
    return Ratio(statistics.median(ratios), ratios[beyond], ratios[count - 1 - beyond])


def show_both(compared: list[tuple[Kind, Kind]]) -> list[str]:
    rows = []
    for its, mine in compared:
        shown: list[str] = []
        for before, after in ((its.cpu, mine.cpu), (its.cpu_busy, mine.cpu_busy)):
            middles = (f"{statistics.median(each) * 1e6:.0f}" for each in (before, after))
            shown += [*middles, str(ratio_of(before, after))]
        rows.append((mine.name, *shown))
    clients = f"{_CLIENTS} clients"
    return table(("call", "CPU µs, other", "here", "ratio (95 %)", f"{clients}, other", "here", "ratio (95 %)"), rows)


async def _round(kind: Kind, gateway: GatewayProcess, port: int, calls: int) -> None:
    """The same number of calls both ways, one after another on a kept connection."""
    async with _connected(port) as direct:
        for _ in range(calls):
            kind.direct.append(await direct.call("/v1/chat/completions", _chat(kind), stream=kind.stream))
    async with _connected(gateway.port) as through:
        before = gateway.cpu()
        for _ in range(calls):
            kind.through.append(await through.call(kind.path, _body(kind), stream=kind.stream))
        await asyncio.sleep(_WRITTEN)
        kind.cpu.append((gateway.cpu() - before) / calls)


async def _busy(kind: Kind, gateway: GatewayProcess, calls: int) -> None:
    """Many clients at once: what a request costs when the gateway has enough to do."""
    before = gateway.cpu()
    await _call_at_once(kind, gateway, calls, _CLIENTS)
    await asyncio.sleep(_WRITTEN)
    kind.cpu_busy.append((gateway.cpu() - before) / calls / _CLIENTS)


async def _call_at_once(kind: Kind, gateway: GatewayProcess, calls: int, clients: int) -> None:
    async def client() -> None:
        async with _connected(gateway.port) as connection:
            for _ in range(calls):
                await connection.call(kind.path, _body(kind), stream=kind.stream)

    await asyncio.gather(*(client() for _ in range(clients)))


class _Connection:
    """A client that does next to nothing itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def call(self, path: str, body: bytes, *, stream: bool) -> float:
        """Seconds from the request to the last byte of the answer."""
        started = time.perf_counter()
        kind = "content-type: application/json"
        head = f"POST {path} HTTP/1.1\r\nhost: [::1]\r\n{kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        if stream:
            await self._reader.readuntil(b"0\r\n\r\n")
        else:
            length = answer.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]
            await self._reader.readexactly(int(length))
        return time.perf_counter() - started

    def close(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def _connected(port: int) -> AsyncIterator[_Connection]:
    connection = _Connection(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))
    try:
        yield connection
    finally:
        connection.close()


def _body(kind: Kind) -> bytes:
    if "chat" in kind.path:
        return _chat(kind)
    return _encode({"model": f"up/{kind.model}", "input": "Tell me something", "stream": kind.stream})


def _chat(kind: Kind) -> bytes:
    messages = [{"role": "user", "content": "Tell me something"}]
    return _encode({"model": f"up/{kind.model}", "messages": messages, "stream": kind.stream, "store": True})


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


class _upstream:  # used like a function
    """The fast upstream as a process; its port."""

    def __enter__(self) -> int:
        self._process = subprocess.Popen([sys.executable, "-m", "bench.gateways.upstream"], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def show(measured: list[Kind]) -> list[str]:
    head = ("call", "direct p50", "through p50", "added p50", "added p95", "CPU µs", "CPU µs, 16 clients", "per delta")
    rows = []
    for kind in measured:
        direct, through = statistics.median(kind.direct) * 1e3, statistics.median(kind.through) * 1e3
        late = (percentile(kind.through, 0.95) - percentile(kind.direct, 0.95)) * 1e3
        busy = statistics.mean(kind.cpu_busy) * 1e6
        rows.append(
            (
                kind.name,
                f"{direct:.2f} ms",
                f"{through:.2f} ms",
                f"{through - direct:.2f} ms",
                f"{late:.2f} ms",
                f"{statistics.mean(kind.cpu) * 1e6:.0f}",
                f"{busy:.0f}",
                f"{busy / DELTAS:.1f} µs" if kind.stream else "",
            )
        )
    return table(head, rows)


if __name__ == "__main__":
    main()
