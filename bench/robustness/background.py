"""200 background responses at once, and places for 8: the rest waits, and each is told what it is.

The provider counts how many requests it has at the same time and answers none before all were accepted. Then
everybody is looked at until the end: the status in the store follows the run and never goes back. A second gateway has
a short queue: what does not fit is refused with words that name the setting, and what was accepted is made.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.robustness.client import Client, Reply, fetch, text_of
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream

_ORDER: Final = ("queued", "in_progress", "completed")


@dataclass(slots=True)
class Scene:
    """The upstream's side: it says nothing at all before it is told to."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    busy: int = 0
    most: int = 0
    begun: int = 0

    async def handle(self, call: Call) -> None:
        self.busy += 1
        self.begun += 1
        self.most = max(self.most, self.busy)
        try:
            await self.go_on.wait()
            await asyncio.sleep(0.01)
            self.busy -= 1  # before its answer: the gateway may ask again as soon as it has that
            await call.reply(f"an answer to {call.words}")
        except asyncio.CancelledError:
            self.busy -= 1
            raise


async def check(runs: int = 200, limit: int = 8, queue: int = 5) -> Report:
    report = Report(f"Background: {runs} responses, {limit} at a time")
    await _all_of_them(report, runs, limit)
    await _short_queue(report, limit, queue)
    return report


async def _all_of_them(report: Report, runs: int, limit: int) -> None:
    scene = Scene()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Upstream(scene.handle) as upstream,
            running_gateway(Path(folder), upstream.base_url, background=f"max_running = {limit}") as gateway,
        ):
            asked = {f"question {each}" for each in range(runs)}
            replies = await _ask(gateway, sorted(asked))
            accepted = {reply.json["id"]: words for words, reply in replies.items() if reply.status == 200}
            report.add("accepted", len(accepted), f"all {runs}", kept=len(accepted) == runs)
            await until(lambda: scene.begun >= limit or None, "the first requests")
            expected = Counter({"in_progress": limit, "queued": runs - limit})
            states = await until(lambda: _states_if(gateway, accepted, expected), "the statuses of a full house")
            told = f"{states['in_progress']} in_progress, {states['queued']} queued"
            report.add("statuses while the provider is silent", told, f"{limit}, {runs - limit}")
            started = time.monotonic()
            scene.go_on.set()
            await _watch(report, gateway, accepted)
            report.add("until the last one ended", f"{time.monotonic() - started:.1f} s")
            report.add("requests at the provider at a time", scene.most, f"{limit}", kept=scene.most == limit)
            report.add("requests at the provider in all", scene.begun, f"{runs}", kept=scene.begun == runs)
            report.add("tracebacks in the log", gateway.tracebacks(), "0", kept=not gateway.tracebacks())


async def _short_queue(report: Report, limit: int, queue: int) -> None:
    scene, more = Scene(), 7
    places = f"max_running = {limit}\nmax_queued = {queue}"
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Upstream(scene.handle) as upstream,
            running_gateway(Path(folder), upstream.base_url, background=places) as gateway,
        ):
            fitting = limit + queue
            replies = await _ask(gateway, [f"question {each}" for each in range(fitting + more)])
            accepted = {reply.json["id"]: words for words, reply in replies.items() if reply.status == 200}
            refused = [reply for reply in replies.values() if reply.status != 200]
            right = sum(_is_refusal(reply) for reply in refused)
            kept = (len(accepted), len(refused), right) == (fitting, more, more)
            told = f"{len(accepted)} accepted, {right} times 503"
            limits = f"{fitting} accepted, {more} times 503"
            report.add(f"{fitting + more} with a queue of {queue}", told, limits, kept=kept)
            scene.go_on.set()
            await _watch(report, gateway, accepted)
            again = await fetch(gateway.port, "POST", "/v1/responses", {"input": "again", "background": True})
            report.add("one more afterwards", again.status, "200", kept=again.status == 200)


def _is_refusal(reply: Reply) -> bool:
    return (
        reply.status == 503
        and "background.max_queued" in reply.json["error"]["message"]
        and int(reply.headers["retry-after"]) >= 1
    )


async def _ask(gateway: GatewayProcess, asked: list[str], clients: int = 16) -> dict[str, Reply]:
    """By some clients, one after another each."""
    replies: dict[str, Reply] = {}

    async def ask(mine: list[str]) -> None:
        async with await Client.open(gateway.port) as client:
            for words in mine:
                replies[words] = await client.request("POST", "/v1/responses", {"input": words, "background": True})

    await asyncio.gather(*(ask(asked[first::clients]) for first in range(clients)))
    return replies


async def _states_if(gateway: GatewayProcess, accepted: dict[str, str], wanted: Counter[str]) -> Counter[str] | None:
    async with await Client.open(gateway.port) as client:
        states = Counter([(await client.request("GET", f"/v1/responses/{id}")).json["status"] for id in accepted])
    return states if states == wanted else None


async def _watch(report: Report, gateway: GatewayProcess, accepted: dict[str, str]) -> None:
    """Look at each until all have ended: no status may go back, and each answer must be its own, whole."""
    last, whole = dict.fromkeys(accepted, "queued"), 0

    async def look() -> bool | None:
        nonlocal whole
        async with await Client.open(gateway.port) as client:
            for id in [id for id, state in last.items() if state != "completed"]:
                response = (await client.request("GET", f"/v1/responses/{id}")).json
                state = response.get("status")
                if state not in _ORDER or _ORDER.index(state) < _ORDER.index(last[id]):
                    raise RuntimeError(f"{id} was {last[id]} and is {state}: {response}")
                last[id] = state
                whole += state == "completed" and text_of(response) == f"an answer to {accepted[id]}"
        return True if set(last.values()) == {"completed"} else None

    try:
        await until(look, "the end of all responses")
    except (RuntimeError, TimeoutError) as error:
        report.problems.append(str(error))
    report.add("completed, each with its own answer", whole, f"all {len(accepted)}", kept=whole == len(accepted))
