"""After a storm: what clients were told is stored, nothing goes on, and the process is as small as it was."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.robustness.client import Client, fetch
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess
from bench.robustness.storm_clients import PATH, Foreign, User
from bench.robustness.storm_told import UNFINISHED, Stream, Told
from bench.robustness.storm_upstream import Weather
from bench.robustness.upstream import Upstream

from isthmus.store.sqlite.store import SqliteStore

GROWTH: Final = 100_000_000
"""Resident bytes above those after the warm-up that may stay."""
SPARE: Final = 3
"""File descriptors, tasks, threads and processes likewise: a thread or two start when they are first needed."""
_FOLLOWED: Final = 100
"""Background responses that are told once more at the end."""


@dataclass(frozen=True, slots=True)
class Size:
    """What the process takes, as the kernel and `/ready` tell it."""

    memory: int
    files: int
    tasks: int
    threads: int
    children: int

    def above(self, other: Size) -> list[str]:
        """What has not come back to `other`."""
        memory = [f"memory {self.memory / 1e6:.0f} MB"] if self.memory > other.memory + GROWTH else []
        return memory + [
            f"{name} {getattr(self, name)}"
            for name in ("files", "tasks", "threads", "children")
            if getattr(self, name) > getattr(other, name) + SPARE
        ]


async def size_of(gateway: GatewayProcess, upstream: Upstream) -> Size:
    """With the connections that are kept for the next request closed."""
    for connection in list(upstream.open):
        connection.abort()
    tasks = (await fetch(gateway.port, "GET", "/ready")).json["tasks"]
    return Size(gateway.memory(), gateway.files(), tasks, gateway.threads(), gateway.children())


async def wait_for(look: Callable[[], Any], seconds: float) -> Any:
    """What is left when nothing is, or when the time is over: states of another process have no event to wait for."""
    deadline = time.monotonic() + seconds
    while True:
        left = await look()
        if not left or time.monotonic() > deadline:
            return left
        await asyncio.sleep(0.1)


async def judge_rest(
    report: Report, gateway: GatewayProcess, upstream: Upstream, weather: Weather, before: Size, patience: float
) -> None:
    """Nothing is under way any more, and everything that was taken is given back."""

    async def busy() -> list[str]:
        ready = (await fetch(gateway.port, "GET", "/ready")).json
        parts = {
            "responses under way": ready["running"],
            "requests at the provider": weather.busy,
            "rows unfinished": len(_unfinished(gateway.database)),
            "leases held": _leases(gateway.database),
        }
        return [f"{count} {what}" for what, count in parts.items() if count]

    left = await wait_for(busy, patience)
    report.add("under way when all clients had gone", ", ".join(left) or "nothing", "nothing", kept=not left)

    async def grown() -> list[str]:
        return (await size_of(gateway, upstream)).above(before)

    grew = await wait_for(grown, patience)
    after = await size_of(gateway, upstream)
    report.problems += [f"did not come back: {each}" for each in grew]
    for name in ("memory", "files", "tasks", "threads", "children"):
        was, now = getattr(before, name), getattr(after, name)
        kept = not any(each.startswith(name) for each in grew)
        if name == "memory":
            told, limit = f"{was / 1e6:.0f} → {now / 1e6:.0f} MB", f"+ {GROWTH / 1e6:.0f} MB"
        else:
            told, limit = f"{was} → {now}", f"+ {SPARE}"
        report.add(f"{name} before and after", told, limit, kept=kept)


async def judge_told(report: Report, gateway: GatewayProcess, told: Told, foreign: list[Foreign], when: str) -> None:
    """All that anybody saw, read again."""
    gone = told.deleted | told.unsure
    same = ended = missing = 0
    async with await Client.open(gateway.port) as client:
        for id, kept in told.ended.items():
            if id not in gone:
                reply = await client.request("GET", f"{PATH}/{id}")
                same += reply.status == 200 and reply.body == kept
                if reply.body != kept:
                    report.problems.append(f"{when}: {id} is {reply.body[:300]!r}, told as {kept[:300]!r}")
        for id in (told.accepted.keys() | told.left) - gone:
            reply = await client.request("GET", f"{PATH}/{id}")
            over = reply.status == 200 and reply.json["status"] not in UNFINISHED
            ended += over
            if not over:
                report.problems.append(f"{when}: {id} is {reply.status} {reply.body[:200]!r}")
        for id in told.deleted:
            missing += (await client.request("GET", f"{PATH}/{id}")).status == 404
    every = len(told.ended.keys() - gone)
    report.add(f"ends that clients saw, byte for byte, {when}", f"{same} of {every}", "all", kept=same == every)
    every = len((told.accepted.keys() | told.left) - gone)
    report.add(f"accepted or left, and ended, {when}", f"{ended} of {every}", "all", kept=ended == every)
    every = len(told.deleted)
    report.add(f"deleted, and gone, {when}", f"{missing} of {every}", "all", kept=missing == every)
    untouched = await _untouched(gateway.database, foreign)
    kept = untouched == len(foreign)
    report.add(f"another owner's, untouched, {when}", f"{untouched} of {len(foreign)}", "all", kept=kept)


async def judge_streams(report: Report, user: User, told: Told) -> None:
    """Background responses, told once more: one end, and it is the one that is stored."""
    ids = [id for id in told.accepted if id in told.ended and id not in told.deleted | told.unsure][-_FOLLOWED:]
    same = 0
    for id in ids:
        stream: Stream | None = await user.followed(id)
        if stream is not None and stream.judge(told, f"{id}, told again"):
            same += stream.end == told.ended[id]
    report.add("background streams told again, the same end", f"{same} of {len(ids)}", "all", kept=same == len(ids))


def judge_file(report: Report, gateway: GatewayProcess) -> None:
    said = str(_rows(gateway.database, "PRAGMA integrity_check")[0][0])
    report.add("integrity_check of the file", said, "ok", kept=said == "ok")
    states = Counter({str(name): int(count) for name, count in _rows(gateway.database, _STATES)})
    left = sum(states[each] for each in UNFINISHED)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    report.add("responses in the file", told, "none unfinished", kept=not left)
    held = _leases(gateway.database)
    report.add("leases left", held, "0", kept=not held)


_STATES: Final = "SELECT status, count(*) FROM responses WHERE deleted = 0 GROUP BY status"


async def nothing_unfinished(database: Path) -> list[str]:
    return _unfinished(database)


def _unfinished(database: Path) -> list[str]:
    query = "SELECT id FROM responses WHERE status IN ('queued', 'in_progress') AND deleted = 0"
    return [str(row[0]) for row in _rows(database, query)]


def _leases(database: Path) -> int:
    """Those of responses; `/ready` takes one for a moment whenever it is asked."""
    query = f"SELECT count(*) FROM leases WHERE until > {time.time()} AND name NOT LIKE '%:ready'"
    return int(_rows(database, query)[0][0])


def _rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        return connection.execute(query).fetchall()


async def _untouched(database: Path, foreign: list[Foreign]) -> int:
    store = SqliteStore(database)
    try:
        found = [await store.load(each.id, owner="carol") for each in foreign]
    finally:
        await store.aclose()
    return sum(each is not None and each.response == one.response for each, one in zip(found, foreign, strict=True))


def most_of(memory: int, gateway: GatewayProcess) -> int:
    with suppress(OSError, RuntimeError):  # it was killed a moment ago
        return max(memory, gateway.memory())
    return memory
