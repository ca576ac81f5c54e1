"""Two gateways on one database, one of which is killed with `kill -9` again and again.

Clients create background responses on both, and look at, follow, cancel and delete them through the other one all the
while. Afterwards every response that was accepted has ended: completed, cancelled because it was asked for, or failed
with a reason once its lease ran out. What a client saw as the end is stored so, and what it deleted is gone.
"""

from __future__ import annotations

import asyncio
import json
import random
import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.robustness.client import TERMINAL, Client, Json, fetch, text_of
from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta

LEASE: Final = 2.0
LATE: Final = 2.0
"""Seconds beyond its lease after which nothing may be unfinished, on a machine that has other things to do."""
_UNFINISHED: Final = ("queued", "in_progress")
_LEFT: Final = "the gateway stopped while this response was being made"


@dataclass(slots=True)
class Seen:
    """What clients were told."""

    accepted: dict[str, str] = field(default_factory=dict)
    """Id → the words it was asked with."""
    ended: dict[str, Json] = field(default_factory=dict)
    """Responses that a client saw with their end."""
    cancelled: set[str] = field(default_factory=set)
    """Those that somebody wanted to be cancelled, whether they were told so or not."""
    deleted: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    """Deleted, but the answer was cut."""
    followed: int = 0
    cut: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Scene:
    """The upstream's side: answers that take a moment, and those asked to wait, which end when told to."""

    chance: random.Random
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, call: Call) -> None:
        pause = self.chance.uniform(0, 0.1)
        if not call.body.get("stream"):
            await asyncio.sleep(pause * 6)
            if call.words.startswith("wait"):
                await self.go_on.wait()
            await call.reply(f"an answer to {call.words}")
            return
        await call.begin()
        for word in f"an answer to {call.words}".split(" "):
            await asyncio.sleep(pause)
            await call.say(delta(f"{word} "))
        if call.words.startswith("wait"):
            await self.go_on.wait()
        await call.end()


async def check(kills: int = 10, clients: int = 6, lease: float = LEASE, late: float = LATE, seed: int = 12) -> Report:
    report = Report(f"Two gateways on one database: one is killed {kills} times")
    chance = random.Random(seed)
    scene, seen = Scene(chance), Seen()
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / each for each in ("one", "two")]
        for each in folders:
            each.mkdir()
        settings = {"store": f"sqlite:{Path(name) / 'shared.db'}", "background": f"lease = {lease}"}
        async with (
            Upstream(scene.handle) as upstream,
            running_gateway(folders[0], upstream.base_url, **settings) as one,
            running_gateway(folders[1], upstream.base_url, **settings) as two,
        ):
            database = Path(name) / "shared.db"
            await _kill_again_and_again(report, (one, two), seen, database, (kills, clients, lease + late), chance)
            await _judge(report, (one, two), seen)
            await _through_the_other(report, one, two, scene)
            tracebacks = one.tracebacks() + two.tracebacks()
            report.add("tracebacks in the logs", tracebacks, "0", kept=not tracebacks)
            await asyncio.gather(one.stop(), two.stop())
            _judge_file(report, database)
    return report


# ── while one of them is killed ────────────────────────────────────────────────────────────────────────


async def _kill_again_and_again(
    report: Report,
    both: tuple[GatewayProcess, GatewayProcess],
    seen: Seen,
    database: Path,
    counts: tuple[int, int, float],
    chance: random.Random,
) -> None:
    (kills, clients, limit), (_, victim) = counts, both
    over, waits, left = asyncio.Event(), [], 0
    asking = [
        asyncio.create_task(_keep_asking(both[each % 2], both[1 - each % 2], seen, over, each, chance))
        for each in range(2 * clients)
    ]
    for number in range(kills):
        # Not before both have work: an early kill would prove nothing.
        already = len(seen.accepted)
        await until(lambda already=already: len(seen.accepted) > already + 2 * clients or None, "work for both")
        await asyncio.sleep(chance.uniform(0, 0.3))
        await victim.kill()
        killed = time.monotonic()
        orphans = _unfinished(database)
        left += len(orphans)
        # Every other time the survivor has to do all of it alone.
        starting = asyncio.create_task(victim.start()) if number % 2 else None
        await until(lambda orphans=orphans: _all_ended(database, orphans), "the end of what the dead one held")
        waits.append(time.monotonic() - killed)
        await (starting or victim.start())
    over.set()
    await asyncio.gather(*asking)
    await until(lambda: _all_ended(database, set(seen.accepted)), "the end of what was asked for last")
    report.add("accepted, on both", len(seen.accepted))
    report.add("requests cut by the kills", seen.cut, "some", kept=seen.cut > 0)
    report.add("unfinished when their gateway was killed", left, "some", kept=left > 0)
    kept = max(waits) <= limit
    report.add("until the last of them had ended", milliseconds(waits), f"{limit:g} s", kept=kept)


async def _keep_asking(
    mine: GatewayProcess, other: GatewayProcess, seen: Seen, over: asyncio.Event, client: int, chance: random.Random
) -> None:
    deeds = (_look, _follow, _cancel, _delete, None)
    number = client
    while not over.is_set():
        number += 1
        words = f"question {client}.{number}"
        try:
            id = await _ask(mine, words, stream=number % 2 == 0)
            seen.accepted[id] = words
            if deed := deeds[number % len(deeds)]:
                await asyncio.sleep(chance.uniform(0, 0.2))
                await deed(other, seen, id)
        except ConnectionRefusedError:
            await until(lambda: over.is_set() or (mine.listening and other.listening) or None, "its next start")
        except (asyncio.IncompleteReadError, OSError):
            seen.cut += 1


async def _ask(gateway: GatewayProcess, words: str, *, stream: bool) -> str:
    """A background response: the answer is its first state, or a stream that is left when that is known."""
    async with await Client.open(gateway.port) as client:
        status = await client.send(
            "POST", "/v1/responses", {"input": words, "background": True, **({"stream": True} if stream else {})}
        )
        if status != 200:
            raise RuntimeError(f"not accepted: {status}")
        if stream:
            id: str = (await anext(client.events()))["response"]["id"]
        else:
            id = json.loads(b"".join([piece async for piece in client.pieces()]))["id"]
    return id


async def _look(gateway: GatewayProcess, seen: Seen, id: str) -> None:
    async def ended() -> Json | None:
        reply = await fetch(gateway.port, "GET", f"/v1/responses/{id}")
        if reply.status != 200:
            seen.wrong.append(f"a look at {id}: {reply.status} {reply.body[:200]!r}")
            return {}
        return reply.json if reply.json["status"] not in _UNFINISHED else None

    if found := await until(ended, f"the end of {id}"):
        seen.ended[id] = found


async def _follow(gateway: GatewayProcess, seen: Seen, id: str) -> None:
    async with await Client.open(gateway.port) as client:
        await client.send("GET", f"/v1/responses/{id}?stream=true")
        events = [event async for event in client.events()]
    seen.followed += 1
    numbers = [event["sequence_number"] for event in events]
    ends = [event["response"] for event in events if event["type"] in TERMINAL]
    told = "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")
    whole = [text_of(response) for response in ends if response["status"] == "completed"]
    if numbers != list(range(len(events))) or len(ends) != 1 or (whole and whole != [told]):
        seen.wrong.append(f"a stream of {id}: {numbers}, {len(ends)} ends, {told!r} told of {whole}")
    for response in ends:
        seen.ended[id] = response


async def _cancel(gateway: GatewayProcess, seen: Seen, id: str) -> None:
    seen.cancelled.add(id)
    reply = await fetch(gateway.port, "POST", f"/v1/responses/{id}/cancel")
    if reply.status == 200 and reply.json["status"] not in _UNFINISHED:
        seen.ended[id] = reply.json
    else:
        seen.wrong.append(f"a cancel of {id}: {reply.status} {reply.body[:200]!r}")


async def _delete(gateway: GatewayProcess, seen: Seen, id: str) -> None:
    seen.unsure.add(id)
    try:
        reply = await fetch(gateway.port, "DELETE", f"/v1/responses/{id}")
    except ConnectionRefusedError:
        seen.unsure.discard(id)
        raise
    seen.unsure.discard(id)
    seen.deleted.add(id)
    if reply.status != 200:
        seen.wrong.append(f"a delete of {id}: {reply.status} {reply.body[:200]!r}")


# ── what is true afterwards ────────────────────────────────────────────────────────────────────────────


async def _judge(report: Report, both: tuple[GatewayProcess, GatewayProcess], seen: Seen) -> None:
    report.problems += seen.wrong
    states: Counter[str] = Counter()
    same = gone = 0
    async with await Client.open(both[0].port) as first, await Client.open(both[1].port) as second:
        for id, words in seen.accepted.items():
            replies = [await client.request("GET", f"/v1/responses/{id}") for client in (first, second)]
            reply = replies[0]
            if replies[0].body != replies[1].body:
                report.problems.append(f"{id} is not the same through both")
            if id in seen.deleted or id in seen.unsure:
                gone += id in seen.deleted and reply.status == 404
                states["deleted"] += 1
                continue
            state = _judge_one(reply.json, words, asked_to_end=id in seen.cancelled)
            states[state] += 1
            if state not in ("completed", "failed", "cancelled"):
                report.problems.append(f"{id}: {reply.status} {reply.body[:300]!r}")
            if id in seen.ended:
                same += reply.json == seen.ended[id]
                if reply.json != seen.ended[id]:
                    report.problems.append(f"{id} was told as {seen.ended[id]['status']}, is {reply.body[:300]!r}")
    every = len(seen.accepted)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    ended = sum(states[each] for each in ("completed", "failed", "cancelled", "deleted"))
    report.add("how they ended", told, f"all {every} ended", kept=ended == every)
    report.add("streams followed through the other, whole", seen.followed, "some", kept=seen.followed > 0)
    known = len(seen.ended)
    report.add("ends that clients saw, stored the same", f"{same} of {known}", "all", kept=same == known)
    deleted = len(seen.deleted)
    report.add("deleted through the other, gone from both", f"{gone} of {deleted}", "all", kept=gone == deleted)


def _judge_one(response: Json, words: str, *, asked_to_end: bool) -> str:
    """Its status, if everything about it is as it must be."""
    match response.get("status"):
        case "completed" if text_of(response).strip() == f"an answer to {words}":
            return "completed"
        case "failed" if response["error"] == {"code": "server_error", "message": _LEFT}:
            return "failed"
        case "cancelled" if asked_to_end:
            return "cancelled"
    return "wrong"


async def _through_the_other(report: Report, one: GatewayProcess, two: GatewayProcess, scene: Scene) -> None:
    """Both live: what one of them makes is followed, cancelled and deleted through the other."""
    cancels, deletes = [], []
    for maker, other in ((one, two), (two, one), (one, two)):
        for deed, times in ((("POST", "/cancel"), cancels), (("DELETE", ""), deletes)):
            id = await _begun(maker, "wait")
            started = time.monotonic()
            reply = await fetch(other.port, deed[0], f"/v1/responses/{id}{deed[1]}")
            times.append(time.monotonic() - started)
            found = await fetch(maker.port, "GET", f"/v1/responses/{id}")
            wanted = (200, 404) if deed[0] == "DELETE" else (200, 200)
            if (reply.status, found.status) != wanted or (found.status == 200 and found.json["status"] != "cancelled"):
                report.problems.append(f"{deed[0]} of {id} through the other: {reply.status}, {found.body[:200]!r}")
    report.add("a cancel through the other", milliseconds(cancels), "cancelled")
    report.add("a delete through the other", milliseconds(deletes), "gone")
    id = await _begun(one, "wait to be followed", stream=True)
    async with await Client.open(two.port) as client:
        await client.send("GET", f"/v1/responses/{id}?stream=true")
        following = client.events()
        kinds = [(await anext(following))["type"] for _ in range(3)]  # it has spoken, and waits
        scene.go_on.set()
        kinds += [event["type"] async for event in following]
    stored = await fetch(one.port, "GET", f"/v1/responses/{id}")
    whole = kinds[-1] == "response.completed" and stored.json["status"] == "completed"
    report.add("a stream through the other, live", f"{len(kinds)} events", "to its end", kept=whole)


async def _begun(gateway: GatewayProcess, words: str, *, stream: bool = False) -> str:
    id = await _ask(gateway, words, stream=stream)

    async def begun() -> bool | None:
        reply = await fetch(gateway.port, "GET", f"/v1/responses/{id}")
        return True if reply.json["status"] == "in_progress" else None

    await until(begun, f"the beginning of {id}")
    return id


# ── the file itself ────────────────────────────────────────────────────────────────────────────────────


def _unfinished(database: Path) -> set[str]:
    """What is unfinished now: with the survivor's own, which end sooner."""
    rows = _ask_file(database, "SELECT id FROM responses WHERE status IN ('queued', 'in_progress') AND deleted = 0")
    return {str(row[0]) for row in rows}


def _all_ended(database: Path, ids: set[str]) -> bool | None:
    return True if not ids & _unfinished(database) else None


def _ask_file(database: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        return connection.execute(query).fetchall()


def _judge_file(report: Report, database: Path) -> None:
    said = str(_ask_file(database, "PRAGMA integrity_check")[0][0])
    report.add("integrity_check of the file", said, "ok", kept=said == "ok")
    left = len(_unfinished(database))
    report.add("responses left unfinished", left, "0", kept=left == 0)
    live = _ask_file(database, f"SELECT count(*) FROM leases WHERE until > {time.time()}")[0][0]
    report.add("leases left", live, "0", kept=live == 0)
