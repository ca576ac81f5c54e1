"""Two replicas on one store, one of which is killed with `kill -9` every few seconds; then the store itself restarts.

Clients do through the other replica whatever can be done there: follow, resume, continue, cancel, look. Afterwards
everything that any of them was told is so, byte for byte, through both; nothing is unfinished, no lease is left, and
the receiver of the webhooks has heard of every background response that ended. With `sqlite` the replicas are two
workers of one gateway, on one file, and the workers are killed.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from bench.replicas.deeds import DEEDS, User, live
from bench.replicas.scene import Books, Receiver, answer
from bench.replicas.told import LEFT, PATH, Told, is_kept
from bench.robustness.client import Client, Reply, fetch
from bench.robustness.report import Report, milliseconds
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Upstream

from isthmus.testing.postgres import PostgresServer

Kind = Literal["postgres", "sqlite"]
LEASE: Final = 2.0
LATE: Final = 6.0
"""Seconds beyond its lease after which nothing of a dead replica may be unfinished, on a machine with other work."""
PAUSE: Final = (2.0, 4.0)
"""Seconds between kills."""
AWAY: Final = 30.0
"""Seconds after a restart of the store in which every replica serves again."""


@dataclass(slots=True)
class Stage:
    report: Report
    replicas: list[GatewayProcess]
    books: Books
    told: Told
    chance: random.Random
    server: PostgresServer | None = None
    kills: int = 0
    orphans: int = 0
    recoveries: list[float] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)


async def check(
    seconds: float = 120.0, kind: Kind = "postgres", *, users: int = 10, seed: int = 1, late: float = LATE
) -> Report:
    what = "two replicas on PostgreSQL" if kind == "postgres" else "two workers on SQLite"
    report = Report(f"Replicas: {what}, {seconds:g} s, {users} clients")
    told = Told()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = await stack.enter_async_context(Upstream(answer, remember=False))
        receiver = await stack.enter_async_context(Upstream(Receiver(told).take, remember=False))
        server = None
        if kind == "postgres":
            # With the server's own care for its disk: it is crashed, too.
            server = stack.enter_context(PostgresServer.running(settings={}))
            url = server.url()
        else:
            url = f"sqlite:{folder / 'shared.db'}"
        replicas = []
        for name in ("one", "two") if kind == "postgres" else ("one",):
            (folder / name).mkdir()
            gateway = running_gateway(
                folder / name,
                upstream.base_url,
                server="" if kind == "postgres" else "workers = 2",
                background=f"lease = {LEASE}\n{_webhooks(receiver)}",
                store=url,
                keeping='durability = "power"',
            )
            replicas.append(await stack.enter_async_context(gateway))
        stage = Stage(report, replicas, Books(url), told, random.Random(seed), server)
        await _play(stage, seconds, users, late)
        await _judge(stage)
        for replica in replicas:
            await replica.stop()
    return report


def _webhooks(receiver: Upstream) -> str:
    address = receiver.base_url.removesuffix("/v1")
    return (
        f'[webhooks]\nprivate_hosts = ["{address.removeprefix("http://")}"]\nfirst_wait = 0.5\nlongest_wait = 1\n'
        f'[webhooks.endpoints.here]\nurl = "{address}/"\n'
        'secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"\n'
    )


# ── meanwhile ──────────────────────────────────────────────────────────────────────────────────────────


async def _play(stage: Stage, seconds: float, users: int, late: float) -> None:
    over, began = asyncio.Event(), time.monotonic()
    everybody = [
        asyncio.create_task(live(User(number, stage.replicas, stage.told, random.Random(f"{number}")), over))
        for number in range(users)
    ]
    killing = seconds * (0.7 if stage.server else 1.0)
    while time.monotonic() - began < killing:
        await asyncio.sleep(stage.chance.uniform(*PAUSE))
        await _kill_one(stage, late)
        _show(stage, time.monotonic() - began)
    if stage.server is not None:
        for how in ("fast", "immediate"):
            await asyncio.sleep((seconds - killing) / 3)
            await _restart_store(stage, stage.server, how)
            _show(stage, time.monotonic() - began)
        await asyncio.sleep((seconds - killing) / 3)
    over.set()
    await asyncio.gather(*everybody)
    await until(lambda: not stage.books.unfinished() or None, "the end of everything that was asked for")


async def _kill_one(stage: Stage, late: float) -> None:
    """The orphans are over soon; every other time before their replica is back."""
    victim = stage.chance.choice(stage.replicas)
    if len(stage.replicas) > 1:
        await victim.kill()
    else:
        os.kill(stage.chance.choice(victim.workers()), signal.SIGKILL)
    killed = time.monotonic()
    stage.kills += 1
    orphans = await asyncio.to_thread(stage.books.unfinished)
    stage.orphans += len(orphans)
    two = len(stage.replicas) > 1
    starting = asyncio.create_task(victim.start()) if two and stage.kills % 2 else None

    async def over() -> bool | None:
        return None if orphans & await asyncio.to_thread(stage.books.unfinished) else True

    await until(over, "the end of what the dead one held")
    stage.recoveries.append(time.monotonic() - killed)
    stage.told.expect(stage.recoveries[-1] < LEASE + late, f"orphans were unfinished for {stage.recoveries[-1]:.1f} s")
    if two:
        await (starting or victim.start())


async def _restart_store(stage: Stage, server: PostgresServer, how: str) -> None:
    await asyncio.to_thread(server.restart, how)
    began = time.monotonic()

    async def served(replica: GatewayProcess) -> bool | None:
        try:
            return True if (await fetch(replica.port, "POST", PATH, {"input": "say x"})).status == 200 else None
        except OSError:
            return None

    for replica in stage.replicas:
        await until(lambda replica=replica: served(replica), "service after the store came back")
    stage.restarts.append(time.monotonic() - began)


def _show(stage: Stage, seconds: float) -> None:
    if sys.stderr.isatty():
        deeds = sum(stage.told.deeds.values())
        line = f"{seconds:.0f} s: {deeds:,} deeds, {stage.kills} kills, {len(stage.told.wrong)} wrong"
        print(f"\r{line:<79}", end="", file=sys.stderr, flush=True)


# ── afterwards ─────────────────────────────────────────────────────────────────────────────────────────


async def _judge(stage: Stage) -> None:
    report, told = stage.report, stage.told
    deeds = {deed.__name__: told.deeds[deed.__name__] for deed in DEEDS}
    every = ", ".join(f"{count} {name}" for name, count in deeds.items())
    report.add("deeds", f"{sum(deeds.values())}: {every}", "every kind", kept=all(deeds.values()))
    report.add("streams read on through the other", told.deeds["resumed"], "some", kept=told.deeds["resumed"] > 0)
    report.add("kills", stage.kills, "some", kept=stage.kills > 0)
    report.add("unfinished when their replica was killed", stage.orphans)
    if stage.recoveries:
        report.add("until all of them had ended", milliseconds(stage.recoveries), f"{LEASE:g} s lease, and a moment")
    if stage.restarts:
        kept = max(stage.restarts) < AWAY
        report.add(
            "service after a restart, a crash of the store", milliseconds(stage.restarts), f"{AWAY:g} s", kept=kept
        )
    for name, count in sorted(told.errors.items()):
        if count:
            report.add(f"  told instead of an answer: {name}", count)
    await _judge_ends(stage)
    await _judge_conversations(stage)
    await _judge_webhooks(stage)
    report.add("responses left unfinished", len(stage.books.unfinished()), "0", kept=not stage.books.unfinished())
    leases = await until(lambda: None if stage.books.leases() else 0, "the end of all leases")
    report.add("leases left", leases, "0")
    report.add("promises broken meanwhile", len(told.wrong), "0", kept=not told.wrong)
    report.problems += told.wrong
    tracebacks = sum(replica.tracebacks() for replica in stage.replicas)
    for replica in stage.replicas:
        log = replica.log.read_text()
        if "Traceback" in log:  # it goes with its folder
            at = log.index("Traceback")
            print(log[max(0, at - 500) : at + 3000], file=sys.stderr)
    report.add("tracebacks in the logs", tracebacks, "0", kept=not tracebacks)


async def _judge_ends(stage: Stage) -> None:
    """As they were told, through both."""
    same = 0
    clients = [await Client.open(replica.port) for replica in (stage.replicas * 2)[:2]]
    for id, body in stage.told.ended.items():
        found = [await client.request("GET", f"{PATH}/{id}") for client in clients]
        right = all(_same(reply, body) for reply in found)
        same += right
        if not right:
            stage.report.problems.append(f"{id} was told as {body[:200]!r}, is {found[0].body[:200]!r}")
    every = len(stage.told.ended)
    stage.report.add("ends that clients saw, the same through both", f"{same} of {every}", "all", kept=same == every)
    for id, words in stage.told.accepted.items():
        response = (await clients[0].request("GET", f"{PATH}/{id}")).json
        status, error = response.get("status"), response.get("error")
        right = status == "completed" or (status == "cancelled" and id in stage.told.cancelled)
        right |= status == "failed" and (error["message"] == LEFT or error["code"] != "server_error")
        if not right:
            stage.report.problems.append(f"{id}, `{words}`: {status} {error}")
    for client in clients:
        client.leave()


def _same(reply: Reply, told: bytes) -> bool:
    """Whoever was told that the store was away, and so would not keep it, finds none."""
    if reply.status == 404:
        return not is_kept(json.loads(told))
    return reply.status == 200 and reply.body == told


async def _judge_conversations(stage: Stage) -> None:
    """Turns that were seen are in it, in their order; of one whose answer was cut nobody knows."""
    whole = 0
    for id, seen in stage.told.conversations.items():
        reply = await fetch(stage.replicas[-1].port, "GET", f"/v1/conversations/{id}/items?limit=100&order=asc")
        items = [item["id"] for item in reply.json["data"]]
        wanted = []
        for response in seen:
            body = (await fetch(stage.replicas[0].port, "GET", f"{PATH}/{response}")).json
            wanted += [item["id"] for item in body["output"]] if body["status"] == "completed" else []
        found = [item for item in items if item in wanted]
        whole += found == wanted
        if found != wanted:
            stage.report.problems.append(f"{id} has {items}, but {wanted} were said in it")
    every = len(stage.told.conversations)
    stage.report.add("conversations with every turn that was seen", f"{whole} of {every}", "all", kept=whole == every)


async def _judge_webhooks(stage: Stage) -> None:
    """At least once each."""
    wanted = set(stage.told.accepted)

    async def all_there() -> bool | None:
        return True if wanted <= set(stage.told.received) else None

    try:
        await until(all_there, "the last webhook")
    except TimeoutError:
        missing = sorted(wanted - set(stage.told.received))
        stage.report.problems.append(f"nobody was told of {missing[:5]}; {stage.books.waiting()} still wait")
    heard = len(wanted & set(stage.told.received))
    more = sum(count > 1 for count in stage.told.received.values())
    told = f"{heard} of {len(wanted)}, {more} of them more than once"
    stage.report.add("webhooks of background responses", told, "all", kept=heard == len(wanted))
