"""What traces add to a request, counted exactly: each door with traces at `metadata` beside the same with traces off.

Run in a process of its own (`fresh.py`). Counted is Python code, in the loop and in the threads that write, until a
trace is written (`doors.py`): of a gateway without traces, all that runs for a request; and of both, all of the rooms
that hear of it and keep traces (`observe/`, `store/traces/`), whose difference is what traces add. No timer of another
room gets between these. Every request says something new, as people do, and a group of them shares one transaction, as
under load. What happens inside C (hashes, SQLite) is not seen here; `bench.overhead --traces` sees it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.gateways.client import PATIENCE, Ask, Connection, Seen, finish
from bench.gateways.subjects import DEFAULT, Subject, ours
from bench.speed.doors import Plant, is_not_ours, plant, running
from bench.speed.instructions import count_instructions, in_threads
from bench.speed.traced import SHORT, WORKLOADS

_CALLS: Final = 48
_FEW: Final = 4
"""In each go: many small ones, or few that take long."""
_GOES: Final = 2
_LONGER: Final = 3_600.0
"""Seconds that traces are gathered for, unless somebody asks for them: all of one go are written together."""
_ROOMS: Final = ("isthmus/observe/", "isthmus/store/traces/")
_SAID: Final = b"Tell me something"


def main() -> None:
    """In: what is looked at, perhaps with a cost to plant. Out: instructions of each, without traces and with them."""
    given: Plant = json.load(sys.stdin)
    if given["at"]:
        plant(given)
    logging.disable(logging.INFO)
    threading.settrace(in_threads)
    off = _count(ours("off", "off", trace=False, store=True), given["only"])
    on = _count(DEFAULT, given["only"])
    print(json.dumps({name: {"off": off[name][0], "added": on[name][1] - off[name][1]} for name in off}))


def _count(subject: Subject, only: list[str]) -> dict[str, tuple[float, float]]:
    """Of each request: all of it, and what those who watch have of it."""
    counted = {}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), subject) as (loop, port, above, gateway):
        if gateway.tracing is not None:
            gateway.tracing._recorder._gather = _LONGER
        for workload in WORKLOADS:
            if workload.name not in only:
                continue
            ask = subject.ask(workload, port, above)
            calls = _FEW if workload.size or workload.told.deltas >= SHORT else _CALLS

            async def go(ask: Ask = ask, calls: int = calls) -> None:
                await _ask(ask, calls)
                if gateway.tracing is not None:
                    await gateway.tracing.settle()

            loop.run_until_complete(go())
            all_of_it, watching = (
                min(
                    count_instructions(lambda go=go: loop.run_until_complete(go()), without=without)  # type: ignore[misc]
                    for _ in range(_GOES)
                )
                for without in (is_not_ours, _watches_not)
            )
            counted[workload.name] = (all_of_it / calls, watching / calls)
    return counted


def _watches_not(file: str) -> bool:
    return is_not_ours(file) or not any(room in file for room in _ROOMS)


async def _ask(ask: Ask, calls: int) -> None:
    seen = Seen()
    client = _Talker(ask, seen, calls)
    await asyncio.get_running_loop().create_connection(lambda: client, "127.0.0.1", ask.port)
    await asyncio.wait_for(client.ready, PATIENCE)
    await finish([client], seen)
    assert not seen.wrong, seen.wrong
    assert seen.calls == calls


class _Talker(Connection):
    """A client that never says the same again."""

    said = 0

    def begin(self) -> None:
        _Talker.said += 1
        new = f"Tell me no. {_Talker.said:05}".encode()
        assert len(new) == len(_SAID)
        self._wire = replace(self._ask, body=self._ask.body.replace(_SAID, new)).wire
        super().begin()


if __name__ == "__main__":
    main()
