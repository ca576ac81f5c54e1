"""Cost against size in a gateway that serves: chains, conversations, stored responses, streams, workers.

CPU time of the whole process tree for each request, the middle of several goes; it runs as it comes, with SQLite and
traces.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sqlite3
import statistics
from pathlib import Path
from typing import Any, Final

from bench.gateways.client import Ask, run
from bench.gateways.progress import Progress
from bench.gateways.scene import Playing, Scene, make_chain, staged
from bench.gateways.streams import hold
from bench.gateways.subjects import DEFAULT, Start, Subject
from bench.gateways.workloads import named
from bench.robustness.client import fetch

Json = dict[str, Any]
CHAIN: Final = (1, 10, 50, 200, 500, 1000)
CONVERSATION: Final = (1, 10, 50, 200, 500, 1000)
STORED: Final = (1_000, 10_000, 100_000, 1_000_000)
STREAMS: Final = (1, 10, 100, 500, 1000, 2000)
WORKERS: Final = (1, 2)
PACE: Final = 200
"""Milliseconds between two words of a stream: slow enough for one core to carry the most of them."""
_CALLS: Final = 6
_CLIENTS: Final = 4
_GOES: Final = 3


async def rows(share: float, progress: Progress) -> list[Json]:
    async with staged([DEFAULT]) as scene:
        playing = scene.playing[0]
        found = [
            await _chain(playing, _upto(CHAIN, share), progress),
            await _conversation(playing, _upto(CONVERSATION, share), progress),
            await _stored(playing, _upto(STORED, share), progress),
        ]
    async with staged([]) as scene:
        found.append(await _streams(scene, _upto(STREAMS, share), progress))
        found.append(await _workers(scene, progress))
    return found


def _upto(sizes: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(size for size in sizes if size <= sizes[-1] * share) or sizes[:2]


async def _chain(playing: Playing, sizes: tuple[int, ...], progress: Progress) -> Json:
    points, made = [], 0
    for size in sizes:
        progress.step(f"a chain of {size}")
        if wrong := await make_chain(playing, size - made):
            raise RuntimeError(wrong)
        made = size
        ask = playing.subject.ask(named("small, whole"), playing.port, playing.upstream, playing.chain)
        points.append((size, await _each(playing, ask)))
    return _row("turns behind a chained request", "turns", points)


async def _conversation(playing: Playing, sizes: tuple[int, ...], progress: Progress) -> Json:
    """Each ask adds a turn of its own: a few more than said."""
    created = (await fetch(playing.port, "POST", "/v1/conversations", {})).json["id"]
    points, made = [], 0
    for size in sizes:
        progress.step(f"a conversation of {size}")
        while made < size:
            many = min(10, size - made)
            items = [{"type": "message", "role": "user", "content": f"turn {made + each}"} for each in range(many)]
            path = f"/v1/conversations/{created}/items"
            reply = await fetch(playing.port, "POST", path, {"items": items})
            assert reply.status == 200, reply.body
            made += many
        small = named("small, whole")
        body = json.loads(small.body("up/")) | {"conversation": created}
        ask = dataclasses.replace(
            playing.subject.ask(small, playing.port, playing.upstream), body=json.dumps(body).encode()
        )
        points.append((size, await _each(playing, ask, calls=2, clients=1)))
    return _row("items of a conversation", "items", points)


async def _stored(playing: Playing, sizes: tuple[int, ...], progress: Progress) -> Json:
    assert playing.tree is not None
    points = []
    for size in sizes:
        progress.step(f"{size:,} stored responses")
        await asyncio.to_thread(fill, playing.tree.folder / "isthmus.db", size)
        ask = playing.subject.ask(named("small, whole"), playing.port, playing.upstream)
        points.append((size, await _each(playing, ask, calls=20)))
    return _row("responses in the store, asked beside them", "rows", points)


def fill(database: Path, rows: int) -> None:
    """As many rows as asked for, each a copy of one that is there, with parts and pieces of its own."""
    with sqlite3.connect(database, timeout=120) as connection:
        (there,) = connection.execute("SELECT count(*) FROM responses").fetchone()
        (last,) = connection.execute("SELECT max(key) FROM responses").fetchone()
        (piece,) = connection.execute("SELECT max(key) FROM pieces").fetchone()
        model = connection.execute("SELECT max(response) FROM parts").fetchone()[0]
        wanted = rows - there
        if wanted <= 0:
            return
        numbers = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {wanted}) "
        connection.execute(
            numbers + "INSERT INTO responses (key, id, owner, created_at, status, model, provider, skeleton)"
            f" SELECT {last} + i, 'resp_' || lower(hex(randomblob(16))), owner, created_at, status, model, provider,"
            f" skeleton FROM n, responses WHERE key = {model}"
        )
        connection.execute(
            numbers + "INSERT INTO pieces (key, hash, owner, data)"
            f" SELECT {piece} + i, randomblob(32), owner, data FROM n, pieces WHERE key = {piece}"
        )
        connection.execute(
            numbers + f"INSERT INTO parts SELECT {last} + i, place, position, {piece} + i FROM n, parts"
            f" WHERE response = {model} AND position = 0"
        )
    connection.close()


async def _streams(scene: Scene, sizes: tuple[int, ...], progress: Progress) -> Json:
    """All of them together, for each second."""
    points = []
    playing, _ = await scene.start(DEFAULT)
    assert playing.tree is not None
    try:
        await run(playing.ask(named("200 deltas, coalesced")), 2, 4)
        for size in sizes:
            progress.step(f"{size} streams")
            figures = await hold(playing, size, 4.0, pace=PACE)
            if figures["gaps"] < 0.8 * figures["expected_gaps"]:
                break  # more than one core can carry: no cost to be had
            points.append((size, round(figures["core"] * 1e6)))
    finally:
        playing.tree.end()
    return _row(f"streams at once (a word every {PACE} ms), a second", "streams", points)


async def _workers(scene: Scene, progress: Progress) -> Json:
    points = []
    for count in WORKERS:
        progress.step(f"{count} workers")
        playing, _ = await scene.start(_with_workers(count))
        assert playing.tree is not None
        try:
            ask = playing.ask(named("small, whole"))
            await run(ask, 20, _CLIENTS)
            points.append((count, await _each(playing, ask, calls=60)))
        finally:
            playing.tree.end()
    return _row("workers, a small request", "workers", points)


def _with_workers(count: int) -> Subject:
    def start(folder: Path, port: int, upstream: int) -> Start:
        assert DEFAULT.start is not None
        arguments, environment = DEFAULT.start(folder, port, upstream)
        config = Path(arguments[-1])
        config.write_text(config.read_text().replace("[server]\n", f"[server]\nworkers = {count}\n"))
        return arguments, environment

    return dataclasses.replace(DEFAULT, start=start)


async def _each(playing: Playing, ask: Ask, calls: int = _CALLS, clients: int = _CLIENTS) -> float:
    """Microseconds of CPU time for each call."""
    await run(ask, 1, clients)
    goes = []
    for _ in range(_GOES):
        before = playing.cpu()
        seen = await run(ask, calls, clients)
        if seen.wrong:
            raise RuntimeError(seen.wrong[0])
        await asyncio.sleep(0.5)
        goes.append((playing.cpu() - before) / seen.calls * 1e6)
    return round(statistics.median(goes), 1)


def _row(name: str, unit: str, points: list[tuple[int, float]]) -> Json:
    return {"name": name, "unit": unit, "points": points}
