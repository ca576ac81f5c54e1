"""Clients that never ask for anything whole: huge heads, endless heads, half-sent bodies. Others are served."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.robustness.client import Client
from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import GatewayProcess, running_gateway
from bench.robustness.upstream import Call, Upstream

MB: Final = 1_000_000
LIMIT: Final = 0.5
"""Seconds in which somebody else has an answer meanwhile, on a machine with nothing else to do."""
_HEAD: Final = b"POST /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\n"
_LINE: Final = b"x-filler: " + b"x" * 8000 + b"\r\n"


async def check(
    large: int = 40 * MB,
    endless: int = 200,
    half: int = 1001,
    *,
    places: int = 1000,
    patience: float = 3,
    limit: float = LIMIT,
) -> Report:
    report = Report("Requests that are never whole")

    async def handle(call: Call) -> None:
        await call.reply("served")

    with tempfile.TemporaryDirectory() as folder:
        server = f"head_timeout = {patience}\nmax_concurrent = {places}"
        async with (
            Upstream(handle) as upstream,
            running_gateway(Path(folder), upstream.base_url, server=server, store="memory:") as gateway,
        ):
            await _others(gateway, 20)  # what is loaded once is loaded
            await _large_head(report, gateway, large, limit)
            await _endless_heads(report, gateway, endless, patience, limit)
            await _half_sent_bodies(report, gateway, half, limit)
            bugs = gateway.tracebacks()
            report.add("tracebacks in the log", bugs, "0", kept=not bugs)
    return report


async def _large_head(report: Report, gateway: GatewayProcess, size: int, limit: float) -> None:
    before = gateway.memory()
    reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
    writer.write(_HEAD)
    sent = 0
    with contextlib.suppress(ConnectionError):
        while sent < size:
            writer.write(_LINE)
            await writer.drain()
            sent += len(_LINE)
    taken = await _others(gateway, 20)
    grown = gateway.memory() - before
    answer = b""
    with contextlib.suppress(ConnectionError):
        answer = await reader.read(12)
    writer.transport.abort()
    told = "431" if answer.endswith(b" 431") else "cut off" if sent < size else "taken"
    report.add(f"{size // MB} MB of headers", told, "431", kept=told != "taken")
    report.add("growth by them", f"{grown / MB:.1f} MB", "5 MB", kept=grown < 5 * MB)
    _told(report, "20 requests of somebody else then", taken, limit)


async def _endless_heads(report: Report, gateway: GatewayProcess, count: int, patience: float, limit: float) -> None:
    began = time.monotonic()

    async def trickle() -> float:
        reader, writer = await asyncio.open_connection(gateway.host, gateway.port)
        writer.write(_HEAD + b"x-endless: ")
        reading = asyncio.create_task(reader.read())
        with contextlib.suppress(ConnectionError):
            while not reading.done():
                writer.write(b"x")
                await asyncio.wait([reading], timeout=0.25)
            await reading
        writer.transport.abort()
        return time.monotonic() - began

    trickling = asyncio.gather(*(trickle() for _ in range(count)))
    await asyncio.sleep(patience / 2)
    taken = await _others(gateway, 20)
    ended = max(await trickling)
    told = f"all closed after {ended:.1f} s"
    most = patience + max(limit * 4, 1)
    report.add(f"{count} heads without an end, {patience:g} s allowed", told, f"{most:g} s", kept=ended < most)
    _told(report, "20 requests of somebody else meanwhile", taken, limit)


async def _half_sent_bodies(report: Report, gateway: GatewayProcess, count: int, limit: float) -> None:
    before = gateway.memory()
    held = []
    for _ in range(count):
        _, writer = await asyncio.open_connection(gateway.host, gateway.port)
        writer.write(_HEAD + b'content-length: 1000\r\n\r\n{"input": "')
        held.append(writer)
    await _others(gateway, 1)  # answered behind them all: they have been read
    taken = await _others(gateway, 20)
    grown = gateway.memory() - before
    for writer in held:
        writer.transport.abort()
    _told(report, f"20 requests of somebody else beside {count:,} half-sent bodies", taken, limit)
    most = max(40_000 * count, 5 * MB)
    report.add("growth by them", f"{grown / MB:.1f} MB", f"{most // MB} MB", kept=grown < most)


def _told(report: Report, what: str, taken: list[float], limit: float) -> None:
    report.add(what, f"all 200, {milliseconds(taken)}", f"{limit * 1000:g} ms", kept=max(taken) < limit)


async def _others(gateway: GatewayProcess, count: int) -> list[float]:
    """How long each of so many good requests takes, one after another, each on a connection of its own."""
    taken = []
    for _ in range(count):
        began = time.monotonic()
        async with await Client.open(gateway.port) as client:
            status = (await client.request("POST", "/v1/responses", {"input": "hi"})).status
        assert status == 200, status
        taken.append(time.monotonic() - began)
    return taken
