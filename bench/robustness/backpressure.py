"""Clients that do not read slow the upstream down; nothing piles up in the gateway, and nothing is lost.

Many clients ask for a stream of 100 MB and stop reading after its first event. The upstream would send all of
it at once if it were let. All leave, and the same is done again: what the first ones needed is free for the
second. Then one client reads on to the end, and every character is compared.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Final

from bench.robustness.client import Client
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta

MB: Final = 1_000_000
EACH: Final = MB
"""Bytes by which the gateway may grow for each client that stalls: 50 MB for 50 of them."""
ANSWER: Final = 0.5
"""Seconds in which another client is answered meanwhile, on a machine with nothing else to do."""
WORD: Final = "every token counts, "
BURST: Final = 200
"""Deltas that the upstream writes at once."""


async def check(readers: int = 50, stream_bytes: int = 100 * MB, answer: float = ANSWER) -> Report:
    report = Report(f"Backpressure: {readers} stalled readers of a stream of {stream_bytes // MB} MB each")
    limit = max(EACH * readers, 15 * MB)  # a few readers drown in the allocator's own steps
    bursts = stream_bytes // len(_burst(0))

    async def handle(call: Call) -> None:
        await call.begin()
        for number in range(bursts):
            await call.say(_burst(number))
        await call.end()

    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(handle) as upstream, running_gateway(Path(folder), upstream.base_url) as gateway:
            await _warm_up(gateway, upstream)
            before = gateway.memory()
            report.add("memory before", f"{before / MB:.1f} MB")
            for time in ("first", "second"):
                upstream.calls.clear()
                clients = [await _start(gateway) for _ in range(readers)]
                most = max(await _standstill(upstream, readers))
                grown = gateway.memory() - before
                told = f"{grown / MB:.1f} MB"
                report.add(f"growth, all stalled, {time} time", told, f"under {limit // MB} MB", kept=grown < limit)
                await _others_are_served(report, gateway, answer)
                await _leave(clients[1:] if time == "second" else clients, upstream)
            told = f"at most {most / MB:.1f} MB of {stream_bytes // MB} MB"
            report.add("sent by the upstream, per stream", told, "under 20 MB", kept=most < 20 * MB)
            await _read_to_the_end(report, clients[0], bursts)
            clients[0].leave()
            report.add("growth, after its end", f"{(gateway.memory() - before) / MB:.1f} MB")
            bugs = gateway.tracebacks()
            report.add("tracebacks in the log", bugs, "0", kept=not bugs)
    return report


def _burst(number: int) -> bytes:
    return b"".join(delta(f"{number:06d}.{each:03d} {WORD}") for each in range(BURST))


async def _warm_up(gateway: GatewayProcess, upstream: Upstream) -> None:
    """One stream first, left early: what is loaded and allocated once is not growth."""
    client = await _start(gateway)
    await _standstill(upstream, 1)
    await _leave([client], upstream)
    upstream.calls.clear()


async def _start(gateway: GatewayProcess) -> Client:
    """A client that has seen the stream begin, and reads no further."""
    client = await Client.open(gateway.port)
    status = await client.send("POST", "/v1/responses", {"input": "go on", "stream": True, "store": False})
    assert status == 200, status
    return client


async def _standstill(upstream: Upstream, readers: int) -> list[int]:
    """Wait until no stream has moved for half a second: every buffer on the way is full."""
    before: list[int] = []
    while True:
        await asyncio.sleep(0.5)
        sent = [call.sent for call in upstream.calls]
        if len(sent) == readers and sent == before:
            return sent
        before = sent


async def _others_are_served(report: Report, gateway: GatewayProcess, limit: float) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with await Client.open(gateway.port) as client:
        status = (await client.request("GET", "/ready")).status
    taken = loop.time() - started
    report.add(
        "another request meanwhile",
        f"{status}, {taken * 1000:.1f} ms",
        f"200, under {limit * 1000:g} ms",
        kept=status == 200 and taken < limit,
    )


async def _leave(clients: list[Client], upstream: Upstream) -> None:
    for client in clients:
        client.leave()
    await until(lambda: sum(call.left.is_set() for call in upstream.calls) >= len(clients) or None, "the closes")


async def _read_to_the_end(report: Report, client: Client, bursts: int) -> None:
    """The deltas and the final text must both be exactly what the upstream said."""
    heard, total, terminal, final = hashlib.sha256(), 0, "", ""
    async for data in client.frames():
        if data == b"[DONE]":
            continue
        event = json.loads(data)
        if event["type"] == "response.output_text.delta":
            heard.update(event["delta"].encode())
            total += len(event["delta"])
        elif event["type"].startswith("response.") and event.get("response", {}).get("status") == "completed":
            terminal = event["type"]
            final = event["response"]["output"][0]["content"][0]["text"]
    said = "".join(f"{number:06d}.{each:03d} {WORD}" for number in range(bursts) for each in range(BURST))
    whole = heard.digest() == hashlib.sha256(said.encode()).digest() and final == said
    report.add("the reader that went on got", f"{total:,} characters, {terminal}", "every one", kept=whole)
