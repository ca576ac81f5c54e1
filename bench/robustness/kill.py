"""`kill -9` in the middle of 100 requests, again and again, on the same database.

Streams, whole answers and background responses are under way when the process is killed, at a random moment.
After the restart everything that a client was told is there, whole: each response whose terminal event or whole
answer arrived, and each background response that was accepted, which has ended or is marked as failed.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.robustness.client import TERMINAL, Client, Json, fetch, text_of
from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta

LEASE: Final = 1.0
"""Seconds after which the next process may end what the killed one had begun."""


@dataclass(slots=True)
class Seen:
    """What clients were told before the kill."""

    ended: dict[str, Json] = field(default_factory=dict)
    """Responses whose terminal event, or whole answer, arrived."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Background responses that were promised, and the words they were asked with."""
    cut: int = 0


async def check(rounds: int = 20, requests: int = 100, seed: int = 9) -> Report:
    report = Report(f"kill -9: {rounds} times in the middle of {requests} requests")
    chance = random.Random(seed)
    seen, starts, ends, background = Seen(), [], [], {"completed": 0, "failed": 0}

    async def handle(call: Call) -> None:
        pause = chance.uniform(0, 0.03)
        if not call.body.get("stream"):
            await asyncio.sleep(pause * 10)
            await call.reply(f"an answer to {call.words}")
            return
        await call.begin()
        for word in f"an answer to {call.words}".split(" "):
            await asyncio.sleep(pause)
            await call.say(delta(f"{word} "))
        await call.end()

    with tempfile.TemporaryDirectory() as folder:
        async with (
            Upstream(handle) as upstream,
            running_gateway(Path(folder), upstream.base_url, background=f"lease = {LEASE}") as gateway,
        ):
            for number in range(rounds):
                accepted = await _round(gateway, seen, requests, number, chance)
                started = time.monotonic()
                await gateway.start()
                starts.append(time.monotonic() - started)
                await until(lambda: _nothing_unfinished(gateway), "the end of what the killed process had begun")
                ends.append(time.monotonic() - started)
                await _judge_background(report, gateway, accepted, background)
            await _judge_ended(report, gateway, seen)
            report.add("requests cut by the kills", seen.cut, "some", kept=seen.cut > 0)
            told = f"{background['completed']} completed, {background['failed']} failed"
            everybody = sum(background.values()) == len(seen.accepted)
            report.add("accepted background responses", told, f"all {len(seen.accepted)} ended", kept=everybody)
            report.add("restart", milliseconds(starts))
            report.add(f"until nothing was unfinished, with a lease of {LEASE:g} s", milliseconds(ends))
            await _goes_on(report, gateway, seen)
            report.add("tracebacks in the log", gateway.tracebacks(), "0", kept=not gateway.tracebacks())
            await gateway.stop()
            _judge_file(report, gateway)
    return report


async def _round(
    gateway: GatewayProcess, seen: Seen, requests: int, number: int, chance: random.Random
) -> dict[str, str]:
    accepted: dict[str, str] = {}
    asking = [
        asyncio.create_task(_ask(gateway, seen, accepted, f"question {number}.{each}", each))
        for each in range(requests)
    ]
    ended = len(seen.ended)
    # Not before something has ended: an early kill would prove nothing.
    await until(lambda: len(seen.ended) > ended or None, "the first answer")
    await asyncio.sleep(chance.uniform(0, 0.3))
    await gateway.kill()
    await asyncio.gather(*asking)
    seen.accepted |= accepted
    return accepted


async def _ask(gateway: GatewayProcess, seen: Seen, accepted: dict[str, str], words: str, number: int) -> None:
    """Streams, whole answers and background responses in turn."""
    try:
        async with await Client.open(gateway.port) as client:
            match number % 4:
                case 0 | 1:
                    await client.send("POST", "/v1/responses", {"input": words, "stream": True})
                    async for event in client.events():
                        if event["type"] in TERMINAL:
                            seen.ended[event["response"]["id"]] = event["response"]
                case 2:
                    reply = await client.request("POST", "/v1/responses", {"input": words})
                    seen.ended[reply.json["id"]] = reply.json
                case _:
                    reply = await client.request("POST", "/v1/responses", {"input": words, "background": True})
                    accepted[reply.json["id"]] = words
    except (asyncio.IncompleteReadError, ConnectionError):
        seen.cut += 1


async def _judge_background(
    report: Report, gateway: GatewayProcess, accepted: dict[str, str], counted: dict[str, int]
) -> None:
    """None may still be in progress, and one that is completed must be whole."""
    async with await Client.open(gateway.port) as client:
        for id, words in accepted.items():
            reply = await client.request("GET", f"/v1/responses/{id}")
            response = reply.json
            state = response.get("status")
            whole = state == "completed" and text_of(response).strip() == f"an answer to {words}"
            if whole or (state == "failed" and response["error"]["code"]):
                counted[state] += 1
            else:
                report.problems.append(f"background response {id}: {reply.status} {reply.body[:200]!r}")


async def _judge_ended(report: Report, gateway: GatewayProcess, seen: Seen) -> None:
    """At the end, after all kills: every answer of every round, compared with what its client was sent."""
    same = listed = 0
    async with await Client.open(gateway.port) as client:
        for id, response in seen.ended.items():
            reply = await client.request("GET", f"/v1/responses/{id}")
            if reply.status == 200 and reply.json == response:
                same += 1
            else:
                report.problems.append(f"{id}: {reply.status} {reply.body[:200]!r}")
            items = await client.request("GET", f"/v1/responses/{id}/input_items")
            listed += items.status == 200 and len(items.json["data"]) == 1
    total = len(seen.ended)
    report.add("answers that clients saw, stored whole", f"{same} of {total}", "all", kept=same == total)
    report.add("  with their input items", f"{listed} of {total}", "all", kept=listed == total)


async def _goes_on(report: Report, gateway: GatewayProcess, seen: Seen) -> None:
    """The last answer that was seen can be continued."""
    asked = {"input": "and now?", "previous_response_id": next(reversed(seen.ended))}
    reply = await fetch(gateway.port, "POST", "/v1/responses", asked)
    report.add("continuing the last answer", reply.status, "200", kept=reply.status == 200)


def _judge_file(report: Report, gateway: GatewayProcess) -> None:
    with closing(sqlite3.connect(gateway.database)) as connection:
        said = connection.execute("PRAGMA integrity_check").fetchone()[0]
    report.add("integrity_check of the file", said, "ok", kept=said == "ok")
    left = _unfinished(gateway)
    report.add("responses left in progress", left, "0", kept=left == 0)


def _nothing_unfinished(gateway: GatewayProcess) -> bool | None:
    return True if not _unfinished(gateway) else None


def _unfinished(gateway: GatewayProcess) -> int:
    with closing(sqlite3.connect(gateway.database, timeout=10)) as connection:
        found = connection.execute("SELECT count(*) FROM responses WHERE status IN ('queued', 'in_progress')")
        count: int = found.fetchone()[0]
    return count
