"""The mixed load of a soak: every workload, chains, and people who leave, at random, for as long as it lasts.

Every answer is read whole and compared with what the upstream said. A client that leaves in the middle expects nothing;
everybody else expects the right end.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from bench.gateways.client import Seen, connect, run
from bench.gateways.scene import Playing
from bench.gateways.workloads import WORKLOADS, Workload, named

TURNS: Final = 30
"""Of one chain, before the next one begins."""
_MIX: Final = tuple(each for each in WORKLOADS if each.part != "chain" and each.size < 100_000)


@dataclass(slots=True)
class Load:
    """What was asked so far, and what went wrong."""

    playing: Playing
    seed: int
    answers: int = 0
    left: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    over: bool = False

    async def clients(self, count: int) -> None:
        """Until somebody says that it is over."""
        await asyncio.gather(*(self._client(random.Random(self.seed + number)) for number in range(count)))

    async def _client(self, chance: random.Random) -> None:
        previous, turns = "", 0
        while not self.over:
            deed = chance.random()
            if deed < 0.1:
                await self._leave(chance)
            elif deed < 0.3:
                previous, turns = (previous, turns + 1) if turns < TURNS else ("", 0)
                previous = await self._turn(previous)
            else:
                workload = chance.choice(_MIX)
                self._note(workload.name, await run(self.playing.ask(workload), 1, 1))

    async def _turn(self, previous: str) -> str:
        ask = self.playing.subject.ask(named("small, whole"), self.playing.port, self.playing.upstream, previous)
        seen = await run(ask, 1, 1)
        self._note("a turn of a chain", seen)
        return str(json.loads(seen.last)["id"]) if seen.last and not seen.wrong else ""

    async def _leave(self, chance: random.Random) -> None:
        slow: Workload = named("200 deltas, 2 ms apart")
        seen = Seen()
        (connection,) = await connect(self.playing.ask(slow), seen, 1, 1)
        connection.begin()
        await asyncio.sleep(chance.random() * 0.2)
        connection.leave()
        self.left += 1

    def _note(self, name: str, seen: Seen) -> None:
        self.answers += seen.calls
        self.kinds[name] += seen.calls
        self.wrong += [f"{name}: {words}" for words in seen.wrong]
