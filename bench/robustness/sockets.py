"""WebSockets: what an idle one takes, and that sockets which are cut in mid-answer leave nothing running upstream."""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import MODEL, PATIENCE, GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta
from websockets.asyncio.client import ClientConnection, connect

EACH: Final = 64_000
"""Bytes that an idle socket may take, with a short conversation that it remembers."""
LIMIT: Final = 1.0
"""Seconds in which the upstream must see that all who were cut are gone."""
ASKED: Final = {"type": "response.create", "model": MODEL, "input": "hi", "store": False}
AT_ONCE: Final = 50


async def check(idle: int = 1000, running: int = 200, each: int = EACH, limit: float = LIMIT) -> Report:
    report = Report(f"Sockets: {idle} idle ones, and {running} that are cut while they are answered")
    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(_handle) as upstream, running_gateway(Path(folder), upstream.base_url) as gateway:
            await _measure_idle(report, gateway, idle, each)
            await _cut(report, gateway, upstream, running, limit)
            bugs = gateway.tracebacks()
            report.add("tracebacks in the log", bugs, "0", kept=not bugs)
    return report


async def _measure_idle(report: Report, gateway: GatewayProcess, count: int, each: int) -> None:
    warm = [await _open(gateway) for _ in range(AT_ONCE)]  # what is made once for all is not theirs
    await asyncio.gather(*(_answer(socket, "whole") for socket in warm))
    before = gateway.memory()
    sockets: list[ClientConnection] = []
    for _ in range(0, count, AT_ONCE):
        some = await asyncio.gather(*(_open(gateway) for _ in range(AT_ONCE)))
        sockets += some
    opened = (gateway.memory() - before) / len(sockets)
    for start in range(0, len(sockets), AT_ONCE):
        await asyncio.gather(*(_answer(socket, "whole") for socket in sockets[start : start + AT_ONCE]))
    asked = (gateway.memory() - before) / len(sockets)
    report.add(
        "memory of one that has asked nothing", f"{opened / 1000:.0f} kB", f"{each / 1000:g} kB", kept=opened < each
    )
    report.add(
        "memory of one with a turn behind it", f"{asked / 1000:.0f} kB", f"{each / 1000:g} kB", kept=asked < each
    )
    for start in range(0, len(sockets), AT_ONCE):
        await asyncio.gather(*(_answer(socket, "again", go_on=True) for socket in sockets[start : start + AT_ONCE]))
    report.add("of these could continue their turn", len(sockets), f"all {len(sockets)}")
    for start in range(0, len(sockets), AT_ONCE):
        await asyncio.gather(*(socket.close() for socket in sockets[start : start + AT_ONCE]))
    await asyncio.gather(*(socket.close() for socket in warm))


async def _cut(report: Report, gateway: GatewayProcess, upstream: Upstream, count: int, limit: float) -> None:
    before = len(upstream.calls)
    sockets = await asyncio.gather(*(_open(gateway) for _ in range(count)))
    for socket in sockets:
        await socket.send(json.dumps({**ASKED, "input": "speaks on"}))
    await asyncio.gather(*(_until(socket, "response.output_text.delta") for socket in sockets))
    calls = upstream.calls[before:]
    left = time.monotonic()
    for socket in sockets:
        socket.transport.abort()
    try:
        await until(lambda: all(call.left.is_set() for call in calls) or None, "the end of every upstream call")
    except TimeoutError as error:
        report.problems.append(str(error))
    still = sum(not call.left.is_set() for call in calls)
    report.add("upstream calls still running", still, "0", kept=len(calls) == count and not still)
    taken = [call.left_at - left for call in calls if call.left.is_set()]
    slow = sum(each > limit for each in taken)
    report.add("until the upstream saw it", milliseconds(taken), f"all under {limit * 1000:g} ms", kept=not slow)


async def _open(gateway: GatewayProcess) -> ClientConnection:
    address = f"ws://127.0.0.1:{gateway.port}/v1/responses"
    return await connect(address, ping_interval=None, compression=None, proxy=None)


async def _answer(socket: ClientConnection, words: str, *, go_on: bool = False) -> None:
    parent = {"previous_response_id": getattr(socket, "last_id", "")} if go_on else {}
    await socket.send(json.dumps({**ASKED, "input": words, **parent}))
    socket.last_id = (await _until(socket, "response.completed"))["response"]["id"]  # type: ignore[attr-defined]


async def _until(socket: ClientConnection, kind: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            event: dict[str, Any] = json.loads(await socket.recv())
            if event["type"] == kind:
                return event
            if event["type"] == "error":
                raise RuntimeError(event)


async def _handle(call: Call) -> None:
    await call.begin()
    await call.say(delta("a word "))
    if call.words == "speaks on":
        await asyncio.Event().wait()
    await call.say(delta(finish="stop"))
    await call.end()
