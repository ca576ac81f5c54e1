"""A client that leaves ends the upstream call at once, and what there was is stored as cancelled.

Each way of leaving is measured from the client's close to the moment at which the upstream sees its own
connection closed.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.robustness.client import Client, Json, fetch, text_of
from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import PATIENCE, GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta

LIMIT: Final = 0.2
"""Seconds in which the upstream must see the close, on a machine with nothing else to do."""
WORDS: Final = [f"word{number} " for number in range(5)]
WAYS: Final = {
    "stream, mid-answer": "speaks",
    "stream, silent upstream": "silent after its head",
    "stream, client stalled": "floods",
    "stream (chat), mid-answer": "speaks",
    "whole, upstream thinks": "silent",
    "whole, mid-answer": "half a reply",
}


async def check(count: int = 50, limit: float = LIMIT) -> Report:
    report = Report(f"Disconnect: {count} clients leave, in each of {len(WAYS)} ways")
    with tempfile.TemporaryDirectory() as folder:
        async with Upstream(_handle) as upstream, running_gateway(Path(folder), upstream.base_url) as gateway:
            for way in WAYS:
                taken, kept = await _measure(way, count, upstream, gateway)
                slow = sum(each > limit for each in taken)
                report.add(way, milliseconds(taken), f"all under {limit * 1000:g} ms", kept=not slow)
                if kept is not None:
                    report.add(
                        "  stored as cancelled, with what was said", f"{kept} of {count}", "all", kept=kept == count
                    )
            await _check_stored(report, gateway, count * sum("chat" not in way for way in WAYS))
    return report


async def _measure(way: str, count: int, upstream: Upstream, gateway: GatewayProcess) -> tuple[list[float], int | None]:
    taken: list[float] = []
    kept = 0
    for number in range(count):
        before = len(upstream.calls)
        path = "/v1/chat/completions" if "chat" in way else "/v1/responses"
        messages: Json = (
            {"messages": [{"role": "user", "content": WAYS[way]}]} if "chat" in way else {"input": WAYS[way]}
        )
        client = await Client.open(gateway.port)
        await client.write("POST", path, {**messages, "stream": way.startswith("stream")})
        response_id, heard = await _listen(client, way)
        call = await _called(upstream, before, WAYS[way] == "half a reply")
        left = time.monotonic()
        client.leave(reset=bool(number % 2))
        async with asyncio.timeout(PATIENCE):
            await call.left.wait()
        taken.append(call.left_at - left)
        if response_id:
            kept += await _is_kept(gateway, response_id, heard)
    return taken, kept if "chat" not in way and way.startswith("stream") else None


async def _listen(client: Client, way: str) -> tuple[str, str]:
    """Read as far as this way of leaving does: the response's id, and the words heard."""
    if not way.startswith("stream"):
        return "", ""
    await client.head()
    response_id, heard = "", ""
    if "chat" in way:
        chunks = client.frames()
        for _ in range(3):
            await anext(chunks)
        return "", ""
    async for event in client.events():
        response_id = response_id or event["response"]["id"]
        heard += event["delta"] if event["type"] == "response.output_text.delta" else ""
        match WAYS[way]:
            case "speaks" if heard == "".join(WORDS):
                break
            case "silent after its head" if event["type"] == "response.in_progress":
                break
            case "floods" if heard:
                await asyncio.sleep(0.05)  # long enough for every buffer on the way to fill
                break
    return response_id, heard


async def _is_kept(gateway: GatewayProcess, response_id: str, heard: str) -> bool:
    async def look() -> Json | None:
        reply = await fetch(gateway.port, "GET", f"/v1/responses/{response_id}")
        return reply.json if reply.status == 200 else None

    response = await until(look, f"the saving of {response_id}")
    return response["status"] == "cancelled" and text_of(response).startswith(heard)


async def _check_stored(report: Report, gateway: GatewayProcess, expected: int) -> None:
    """Whole answers have no id that the client could have seen: count the rows. Chat calls are not stored unasked."""

    def count() -> int | None:
        with closing(sqlite3.connect(gateway.database)) as connection:
            found = dict(connection.execute("SELECT status, count(*) FROM responses GROUP BY status"))
        return found.get("cancelled", 0) if sum(found.values()) >= expected else None

    try:
        cancelled = await until(count, "the last save")
    except TimeoutError as error:
        cancelled = 0
        report.problems.append(str(error))
    report.add("rows stored as cancelled", cancelled, f"all {expected}", kept=cancelled == expected)
    bugs = gateway.tracebacks()
    report.add("tracebacks in the log", bugs, "0", kept=not bugs)


async def _called(upstream: Upstream, number: int, answering: bool) -> Call:
    """The upstream's call of that number, once it is there and, if asked for, once it has sent something."""

    def look() -> Call | None:
        call = upstream.calls[number] if len(upstream.calls) > number else None
        return call if call is not None and (call.sent or not answering) else None

    call: Call = await until(look, "the upstream call")
    return call


async def _handle(call: Call) -> None:
    match call.words:
        case "speaks":
            await call.begin()
            for word in WORDS:
                await call.say(delta(word))
        case "silent after its head":
            await call.begin()
        case "floods":
            await call.begin()
            piece = b"".join(delta(word) for word in WORDS) * 20
            while True:
                await call.say(piece)
        case "half a reply":
            await call.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{")
    await asyncio.Event().wait()
