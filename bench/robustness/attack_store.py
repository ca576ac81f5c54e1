"""What happened to the store under the gateway: its file deleted, damaged, full, or very large."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from bench.robustness.attack_scene import Scene
from bench.robustness.client import fetch
from bench.robustness.rig import until


async def deleted(scene: Scene) -> str:
    """R9: the file is gone under load: nothing is told as done any more that is not kept."""
    told: list[tuple[float, str]] = []
    statuses: dict[int, int] = {}
    stop = asyncio.Event()

    async def load() -> None:
        while not stop.is_set():
            reply = await scene.post({"input": "hi"})
            statuses[reply.status] = statuses.get(reply.status, 0) + 1
            if reply.status == 200 and reply.json["status"] == "completed":
                told.append((time.monotonic(), reply.json["id"]))
            await asyncio.sleep(0.01)

    clients = [asyncio.create_task(load()) for _ in range(4)]
    await until(lambda: len(told) > 20 or None, "the first answers")
    _delete(scene.gateway.database)
    gone = time.monotonic()
    await asyncio.sleep(3)
    ready = await fetch(scene.gateway.port, "GET", "/ready")
    stop.set()
    await asyncio.gather(*clients)
    late = [id for at, id in told if at > gone + 1.5]
    await scene.gateway.kill()
    await scene.gateway.start()
    after = 0
    for id in late:
        after += (await fetch(scene.gateway.port, "GET", f"/v1/responses/{id}")).status == 200
    scene.expect(after == len(late), f"{len(late) - after} answers were told after the file was gone, and are lost")
    if not late:
        scene.expect(ready.status == 503, f"`/ready` says {ready.status} without a store")
    return f"{len(late)} told after it was gone, {after} of them kept; ready {ready.status}"


def _delete(database: Path) -> None:
    for name in ("", "-wal", "-shm"):
        Path(f"{database}{name}").unlink(missing_ok=True)


async def damaged(scene: Scene) -> str:
    """R10: bytes of the file are changed while nobody looks: what is served is what was kept, or 503."""
    kept = {}
    for number in range(40):
        reply = (await scene.post({"input": f"question {number} " + "with many words " * 50})).json
        kept[reply["id"]] = reply
    await scene.gateway.stop()
    data = bytearray(scene.gateway.database.read_bytes())
    chance = random.Random(11)
    for _ in range(max(len(data) // 2_000, 20)):
        at = chance.randrange(len(data) // 4, len(data))  # the first pages are the schema: without it nothing starts
        data[at] ^= 1 << chance.randrange(8)
    scene.gateway.database.write_bytes(data)
    try:
        await scene.gateway.start()
    except RuntimeError as error:
        scene.expect("Traceback" not in str(error), "a damaged file ends the start with a traceback")
        return "it does not start, and says why"
    counted = {"same": 0, "told as damaged": 0, "missing": 0, "other": 0}
    for id, response in kept.items():
        reply = await fetch(scene.gateway.port, "GET", f"/v1/responses/{id}")
        try:
            same = reply.status == 200 and json.loads(reply.body.decode()) == response
        except ValueError:
            same = False
        word = "same" if same else {503: "told as damaged", 404: "missing"}.get(reply.status, "other")
        counted[word] += 1
    scene.expect(counted["other"] == 0, f"{counted['other']} of 40 were served with other content, or 500")
    return ", ".join(f"{count} {word}" for word, count in counted.items() if count)


async def full(scene: Scene) -> str:
    """R11: the disk is full: requests are refused before they cost anything, and served again when there is room."""
    calls = 0

    async def count(call: object) -> None:
        nonlocal calls
        calls += 1
        await call.reply("well")  # type: ignore[attr-defined]

    scene.deeds["count"] = count
    pid = scene.gateway.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (1, hard))
    try:
        statuses = []
        for _ in range(12):
            reply = await scene.post({"input": "count"})
            statuses.append(f"{reply.status} {reply.json.get('status', '')}".strip())
            await asyncio.sleep(0.05)
        ready = await fetch(scene.gateway.port, "GET", "/ready")
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    scene.expect(calls <= 4, f"{calls} of 12 requests were sent and paid for while nothing could be kept")
    scene.expect(ready.status == 503, f"`/ready` says {ready.status} with a full disk")
    scene.expect("200 completed" not in statuses[1:], "told as completed with a full disk")

    async def served() -> bool | None:
        return True if (await scene.post({"input": "count"})).status == 200 else None

    paid = calls
    await until(served, "service after there was room again")
    return f"{paid} of 12 were sent, ready {ready.status}, then served again"


async def many_rows(scene: Scene) -> str:
    """R12: forty `/ready` at once beside a large table: nobody waits for them."""
    rows = 20_000 if scene.small else 400_000
    await scene.post({"input": "hi"})
    await scene.gateway.stop()
    _copy_rows(scene.gateway.database, rows)
    await scene.gateway.start()
    stored = (await scene.post({"input": "hi"})).json
    ready = [asyncio.create_task(fetch(scene.gateway.port, "GET", "/ready")) for _ in range(40)]
    began = time.monotonic()
    await fetch(scene.gateway.port, "GET", f"/v1/responses/{stored['id']}")
    waited = time.monotonic() - began
    statuses = {(await each).status for each in ready}
    limit = 5.0 if scene.small else 0.5
    scene.expect(waited < limit, f"a GET waited {waited:.1f} s beside 40 `/ready`")
    scene.expect(statuses <= {200, 503}, f"`/ready`: {statuses}")
    return f"{rows:,} rows, a GET took {waited * 1000:.0f} ms"


def _copy_rows(database: Path, rows: int) -> None:
    """One stored response, very often: every column as it is, but for its id."""
    with closing(sqlite3.connect(database)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(responses)")]
        keys = [row[1] for row in connection.execute("PRAGMA table_info(responses)") if row[5]]
        shown = ", ".join(
            "'resp_copy' || n" if name == "id" else "NULL" if name in keys else f"responses.{name}" for name in columns
        )
        connection.execute(
            f"WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < {rows}) "
            f"INSERT INTO responses ({', '.join(columns)}) "
            f"SELECT {shown} FROM count, (SELECT * FROM responses LIMIT 1) AS responses"
        )
        connection.commit()
