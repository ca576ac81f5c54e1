"""Somebody else's view of the gateway, from a process of its own: what an attack does to those who do nothing wrong.

In: a gateway's port. Out, for each stretch of time: how long the slowest health ping took, and the longest silence in a
stream whose provider speaks every 20 ms. Both are told beside this process's own delays: on a busy machine nobody is
judged by what the machine did.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from bench.robustness.client import Client
from bench.robustness.upstream import Call, Upstream, delta

BEAT: Final = 0.02
ROOT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class View:
    """Seconds, each the longest of a stretch of time."""

    ping: float
    gap: float
    own: float
    """Delay of the watcher itself: the machine, not the gateway."""
    problem: str = ""


class Watch:
    """The watching process, as the check uses it."""

    def __init__(self, process: asyncio.subprocess.Process, upstream: str) -> None:
        self._process = process
        self.upstream = upstream
        """The address of a provider that speaks steadily."""

    @classmethod
    async def start(cls) -> Self:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.robustness.watch"),
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        return cls(process, json.loads(await process.stdout.readline()))

    async def begin(self, port: int) -> None:
        """Look at this gateway from now on, whatever was watched before."""
        await self._ask({"watch": port})

    async def view(self) -> View:
        """What was seen since the last question."""
        return View(**await self._ask({"view": True}))

    async def aclose(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()

    async def _ask(self, question: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        return json.loads(await asyncio.wait_for(self._process.stdout.readline(), 120))


class _Watcher:
    """Inside the process. A wait that is not over yet counts as long as it has lasted."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._since: dict[str, float] = {}
        self._longest = {"ping": 0.0, "gap": 0.0, "own": 0.0}
        self._problem = ""

    def begin(self, port: int) -> None:
        for task in self._tasks:
            task.cancel()
        self._since.clear()
        self._tasks = [asyncio.create_task(each) for each in (self._ping(port), self._read(port), self._beat())]
        self.view()

    def view(self) -> dict[str, Any]:
        now = time.monotonic()
        for kind in ("ping", "gap"):
            if kind in self._since:
                self._note(kind, now)
        seen = {**self._longest, "problem": self._problem}
        self._longest, self._problem = dict.fromkeys(self._longest, 0.0), ""
        for kind in self._since:
            self._since[kind] = now
        return seen

    def _note(self, kind: str, now: float) -> None:
        self._longest[kind] = max(self._longest[kind], now - self._since[kind])

    async def _ping(self, port: int) -> None:
        while True:
            try:
                async with await Client.open(port) as client:
                    while True:
                        self._since["ping"] = time.monotonic()
                        await client.request("GET", "/health")
                        self._note("ping", time.monotonic())
                        del self._since["ping"]
                        await asyncio.sleep(BEAT)
            except (OSError, EOFError, asyncio.IncompleteReadError) as error:
                self._problem = f"a health ping failed: {error!r}"
                await asyncio.sleep(BEAT)

    async def _read(self, port: int) -> None:
        while True:
            try:
                async with await Client.open(port) as client:
                    asked = {"model": "steady/model", "input": "go on", "stream": True, "store": False}
                    status = await client.send("POST", "/v1/responses", asked)
                    if status != 200:
                        raise OSError(f"status {status}")
                    async for _ in client.frames():
                        now = time.monotonic()
                        if "gap" in self._since:
                            self._note("gap", now)
                        self._since["gap"] = now
                    raise OSError("the stream ended")
            except (OSError, EOFError, asyncio.IncompleteReadError) as error:
                self._problem = f"the other client's stream broke: {error!r}"
                await asyncio.sleep(BEAT)

    async def _beat(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(BEAT)
            self._longest["own"] = max(self._longest["own"], time.monotonic() - before - BEAT)


async def _speak(call: Call) -> None:
    await call.begin()
    while True:
        await call.say(delta("word "))
        await asyncio.sleep(BEAT)


async def _main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    watcher = _Watcher()
    async with Upstream(_speak) as upstream:
        print(json.dumps(upstream.base_url), flush=True)
        while line := await reader.readline():
            question = json.loads(line)
            if "watch" in question:
                watcher.begin(question["watch"])
                await asyncio.sleep(0.3)  # the stream begins
                watcher.view()
            print(json.dumps(watcher.view() if "view" in question else True), flush=True)


if __name__ == "__main__":
    asyncio.run(_main())
