"""Newcomers find a place beside a thousand streams: whoever connects is accepted soon, however busy the one loop is.

Many clients read streams whose deltas come at a pace, spread over time. Then a hundred connect at the same moment, each
with one small question; measured is when each has its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Final

from bench.robustness.client import Client
from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta

LIMIT: Final = 0.5
"""Seconds in which the last of the newcomers has its answer, on a machine with nothing else to do."""
TURN: Final = 0.002
"""Seconds between two groups of streams that get their next delta."""
_DELTA: Final = delta("a word ")
_OPENED_AT_ONCE: Final = 50


async def check(streams: int = 1000, newcomers: int = 100, pace: float = 0.3, limit: float = LIMIT) -> Report:
    report = Report(f"Newcomers beside {streams} streams with a delta every {pace * 1000:g} ms each")
    flowing: list[Call] = []
    ended = asyncio.Event()

    async def handle(call: Call) -> None:
        await call.begin()
        await call.say(_DELTA)
        flowing.append(call)
        await ended.wait()

    with tempfile.TemporaryDirectory() as folder:
        server = f"max_concurrent = {streams + newcomers}"
        async with (
            Upstream(handle) as upstream,
            running_gateway(Path(folder), upstream.base_url, server=server) as gateway,
        ):
            readers = await _open(gateway, streams)
            await until(lambda: len(flowing) >= streams or None, "the streams' begin")
            pacing = asyncio.create_task(_keep_pace(flowing, pace))
            before, began = gateway.cpu(), time.monotonic()
            await asyncio.sleep(3)
            taken, spent = [], []
            for _ in range(3):
                at = gateway.cpu()
                taken.append(await asyncio.gather(*(_ask(gateway) for _ in range(newcomers))))
                spent.append(gateway.cpu() - at)
                await asyncio.sleep(0.5)
            busy = (gateway.cpu() - before) / (time.monotonic() - began)
            pacing.cancel()
            for reader in readers:
                reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(*readers)
            bugs = gateway.tracebacks()
    report.add("deltas a second that were sent, all streams", f"{streams / pace:,.0f}")
    report.add("the gateway's share of its core", f"{busy:.0%}")
    for number, (each, cpu) in enumerate(zip(taken, spent, strict=True), 1):
        told = f"{milliseconds(each)}; CPU {cpu * 1000:.0f} ms"
        report.add(f"{newcomers} newcomers, time {number}", told)
    worst = sorted(max(each) for each in taken)[len(taken) // 2]
    told = f"{worst * 1000:.0f} ms"
    report.add(f"the last of {newcomers}, median of 3 times", told, f"{limit * 1000:g} ms", kept=worst < limit)
    report.add("tracebacks in the log", bugs, "0", kept=not bugs)
    return report


async def _open(gateway: GatewayProcess, streams: int) -> list[asyncio.Task[None]]:
    readers = []
    for first in range(0, streams, _OPENED_AT_ONCE):
        count = min(_OPENED_AT_ONCE, streams - first)
        readers += [
            asyncio.create_task(each) for each in await asyncio.gather(*(_start(gateway) for _ in range(count)))
        ]
    return readers


async def _start(gateway: GatewayProcess) -> Coroutine[None, None, None]:
    client = await Client.open(gateway.port)
    status = await client.send("POST", "/v1/responses", {"input": "go on", "stream": True, "store": False})
    assert status == 200, status

    async def read() -> None:
        try:
            while await client.more():
                pass
        finally:
            client.leave()

    return read()


async def _keep_pace(flowing: list[Call], pace: float) -> None:
    """A few streams at a time, so that each has its delta once in `pace` seconds. What the machine cannot do in time
    is left out, not made up for."""
    groups = max(int(pace / TURN), 1)
    due, number = time.monotonic(), 0
    while True:
        for call in flowing[number::groups]:
            call.say_now(_DELTA)
        number = (number + 1) % groups
        due = max(due + pace / groups, time.monotonic() - pace)
        await asyncio.sleep(max(due - time.monotonic(), 0))


async def _ask(gateway: GatewayProcess) -> float:
    began = time.monotonic()
    async with await Client.open(gateway.port) as client:
        status = (await client.request("GET", "/health")).status
    assert status == 200, status
    return time.monotonic() - began
