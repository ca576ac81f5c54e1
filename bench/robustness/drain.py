"""SIGTERM: what runs may finish, the rest ends with a terminal event, nothing that was told is lost.

One gateway with every kind of request under way gets SIGTERM: streams that end within the grace period,
streams that do not, whole answers, background responses, a client that does not read. A second gateway gets
the signal twice.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.robustness.client import TERMINAL, Client, Json, fetch, text_of
from bench.robustness.report import Report
from bench.robustness.rig import GatewayProcess, running_gateway, until
from bench.robustness.upstream import Call, Upstream, delta

GRACE: Final = 1.5
ENDING: Final = 5.0
"""Seconds that an end may take beyond the grace period: a client that does not read is waited for shortly."""
HURRY: Final = 1.0
"""Seconds that an end may take after the second signal. These three hold on a machine with nothing else to do."""


@dataclass(slots=True)
class Scene:
    """The upstream's side: `quick` answers go on when told to, `endless` ones never do."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, call: Call) -> None:
        kind = call.words
        if kind == "flood":
            await call.begin()
            while True:
                await call.say(delta("x" * 20) * 200)
        streaming = call.body.get("stream")
        if streaming:
            await call.begin()
            await call.say(delta("begun"))
        await (self.go_on if kind == "quick" else asyncio.Event()).wait()
        if not streaming:
            await call.reply("begun and finished")
            return
        await call.say(delta(" and finished"))
        await call.end()


async def check(streams: int = 20, grace: float = GRACE, ending: float = ENDING, hurry: float = HURRY) -> Report:
    report = Report(f"Drain: SIGTERM with {3 * streams + 1} requests under way, {grace:g} s of grace")
    await _drain_once(report, streams, grace, ending)
    await _signal_twice(report, streams, hurry)
    return report


async def _drain_once(report: Report, streams: int, grace: float, ending: float) -> None:
    scene = Scene()
    with tempfile.TemporaryDirectory() as name:
        async with (
            Upstream(scene.handle) as upstream,
            running_gateway(Path(name), upstream.base_url, server=f"grace = {grace}") as gateway,
        ):
            quick = [asyncio.create_task(_read_stream(gateway, "quick")) for _ in range(streams)]
            endless = [asyncio.create_task(_read_stream(gateway, "endless")) for _ in range(streams)]
            half = streams // 2
            whole = [asyncio.create_task(_whole(gateway, "quick")) for _ in range(half)]
            background = [await _background(gateway, "quick" if each % 2 else "endless") for each in range(half)]
            async with await Client.open(gateway.port) as stalled:
                await stalled.send("POST", "/v1/responses", {"input": "flood", "stream": True})
                deaf = (await anext(stalled.events()))["response"]["id"]
                expected = 2 * streams + 2 * half + 1
                await until(lambda: len(upstream.calls) == expected or None, "all upstream calls")
                started = time.monotonic()
                gateway.terminate()
                await _refused(report, gateway)
                scene.go_on.set()
                finished = [await each for each in quick]
                answers = [await each for each in whole]
                in_grace = time.monotonic() - started
                failed = [await each for each in endless]
                code = await gateway.ended()
                taken = time.monotonic() - started
            _judge_streams(report, finished, failed, answers)
            told = f"{in_grace:.2f} s"
            report.add("running ones finished after", told, f"the grace of {grace:g} s", kept=in_grace < grace)
            told = f"code {code} after {taken:.2f} s"
            report.add("exit", told, f"0, within grace + {ending:g} s", kept=code == 0 and taken < grace + ending)
            await gateway.start()
            await _judge_stored(report, gateway, [*finished, *failed, *answers], background)
            state = (await fetch(gateway.port, "GET", f"/v1/responses/{deaf}")).json["status"]
            report.add("the client that did not read: stored as", state, "failed", kept=state == "failed")
            await gateway.stop()
            report.add("tracebacks in the log", gateway.tracebacks(), "0", kept=not gateway.tracebacks())


async def _refused(report: Report, gateway: GatewayProcess) -> None:
    """New work is refused with words that a client's retries understand; questions are still answered."""
    await until(_is_draining(gateway), "the drain")
    replies = [
        await fetch(gateway.port, "POST", path, {"input": "quick", "messages": [{"role": "user", "content": "quick"}]})
        for path in ("/v1/responses", "/v1/chat/completions", "/v1/responses/input_tokens")
    ]
    good = all(each.status == 503 and each.headers["retry-after"] and each.json["error"]["code"] for each in replies)
    told = f"{', '.join(str(each.status) for each in replies)}, Retry-After: {replies[0].headers.get('retry-after')}"
    report.add("new requests while draining", told, "503 with Retry-After", kept=good)
    alive = (await fetch(gateway.port, "GET", "/health")).status, (await fetch(gateway.port, "GET", "/ready")).status
    report.add("/health and /ready while draining", f"{alive[0]}, {alive[1]}", "200, 503", kept=alive == (200, 503))


def _judge_streams(report: Report, finished: list[Json], failed: list[Json], answers: list[Json]) -> None:
    good = sum(each["status"] == "completed" and text_of(each) == "begun and finished" for each in finished)
    report.add("streams that finished whole", f"{good} of {len(finished)}", "all", kept=good == len(finished))
    good = sum(each["status"] == "completed" and text_of(each) == "begun and finished" for each in answers)
    report.add("whole answers that finished", f"{good} of {len(answers)}", "all", kept=good == len(answers))
    good = sum(each["status"] == "failed" and text_of(each) == "begun" for each in failed)
    report.add("others ended by response.failed", f"{good} of {len(failed)}", "all", kept=good == len(failed))


async def _judge_stored(report: Report, gateway: GatewayProcess, seen: list[Json], background: list[str]) -> None:
    same = 0
    for response in seen:
        reply = await fetch(gateway.port, "GET", f"/v1/responses/{response['id']}")
        same += reply.status == 200 and reply.json == response
    report.add("stored exactly as the client saw it", f"{same} of {len(seen)}", "all", kept=same == len(seen))
    states = [(await fetch(gateway.port, "GET", f"/v1/responses/{each}")).json["status"] for each in background]
    good = all(state == ("completed" if number % 2 else "failed") for number, state in enumerate(states))
    told = f"{states.count('completed')} completed, {states.count('failed')} failed"
    report.add("background responses", told, f"all {len(background)} ended", kept=good)


async def _signal_twice(report: Report, streams: int, hurry: float) -> None:
    scene = Scene()
    with tempfile.TemporaryDirectory() as name:
        async with (
            Upstream(scene.handle) as upstream,
            running_gateway(Path(name), upstream.base_url, server="grace = 60") as gateway,
        ):
            endless = [asyncio.create_task(_read_stream(gateway, "endless")) for _ in range(streams)]
            await until(lambda: len(upstream.calls) == streams or None, "all upstream calls")
            gateway.terminate()
            await until(_is_draining(gateway), "the drain")
            started = time.monotonic()
            gateway.terminate()
            failed = [await each for each in endless]
            code = await gateway.ended()
            taken = time.monotonic() - started
            told = f"code {code} after {taken:.2f} s"
            report.add(
                "second SIGTERM, 60 s of grace", told, f"0, within {hurry:g} s", kept=code == 0 and taken < hurry
            )
            good = sum(each["status"] == "failed" for each in failed)
            report.add("  streams ended by response.failed", f"{good} of {streams}", "all", kept=good == streams)


def _is_draining(gateway: GatewayProcess) -> Callable[[], Awaitable[bool | None]]:
    async def look() -> bool | None:
        return (await fetch(gateway.port, "GET", "/ready")).status == 503 or None

    return look


async def _read_stream(gateway: GatewayProcess, words: str) -> Json:
    """The response of the one terminal event; an empty one where the stream broke off."""
    async with await Client.open(gateway.port) as client:
        await client.send("POST", "/v1/responses", {"input": words, "stream": True})
        ends = [event["response"] async for event in client.events() if event["type"] in TERMINAL]
    return ends[0] if len(ends) == 1 else {"status": f"{len(ends)} terminal events", "id": "none", "output": []}


async def _whole(gateway: GatewayProcess, words: str) -> Json:
    response: Json = (await fetch(gateway.port, "POST", "/v1/responses", {"input": words})).json
    return response


async def _background(gateway: GatewayProcess, words: str) -> str:
    reply = await fetch(gateway.port, "POST", "/v1/responses", {"input": words, "background": True})
    return str(reply.json["id"])
