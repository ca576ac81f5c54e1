"""What traces add to a request, counted exactly: each door with traces at `metadata` beside the same with traces off.

Run in a process of its own (`fresh.py`). Counted is all Python code that runs for a request, in the loop and in the
threads that write, until its trace is written (`doors.py`). Every request says something new, as people do, and a group
of them shares one transaction, as under load. Of a stream what counts is each further delta: the difference between a
long one and a short one. What happens inside C (hashes, SQLite) is not seen here; `bench.overhead --traces` sees it.
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
from bench.gateways.workloads import Workload
from bench.speed.doors import Plant, is_not_ours, plant, running
from bench.speed.instructions import count_instructions, in_threads

LIMIT: Final = 0.10
SHORT, LONG = 50, 250
"""Deltas of the two streams."""
_CALLS: Final = 40
_STREAMS: Final = 3
"""In each go: many whole ones, or few streams."""
_GOES: Final = 2
_LONGER: Final = 3_600.0
"""Seconds that traces are gathered for, unless somebody asks for them: all of one go are written together."""
_SAID: Final = b"Tell me something"

WORKLOADS: Final = (
    Workload("Responses, whole", "responses", "text-10-0"),
    Workload("Chat, whole", "chat", "text-10-0"),
    Workload("Messages, whole", "messages", "text-10-0"),
    Workload("WebSocket, small", "websocket", "text-10-0", stream=True),
    Workload("Codex request, whole", "responses", "text-10-0", part="codex", size=41_000),
    *(
        Workload(f"{title}, {deltas} deltas", door, f"text-{deltas}-0", stream=True)
        for title, door in (("Responses", "responses"), ("Chat", "chat"), ("Messages", "messages"))
        for deltas in (SHORT, LONG)
    ),
)


def main() -> None:
    """In: nothing, or a cost to plant. Out: instructions of each, without traces and with them."""
    given: Plant | None = json.load(sys.stdin)
    if given is not None:
        plant(given)
    logging.disable(logging.INFO)
    threading.settrace(in_threads)
    only = given["only"] if given else None
    off, on = (_count(subject, only) for subject in (ours("off", "off", trace=False, store=True), DEFAULT))
    print(json.dumps({name: {"off": off[name], "metadata": on[name]} for name in off}))


def per_delta(counted: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Streams of two lengths → what each further delta takes; all others as they are."""
    short, long = f", {SHORT} deltas", f", {LONG} deltas"
    found = {name: both for name, both in counted.items() if not name.endswith((short, long))}
    for name, few in counted.items():
        if name.endswith(short):
            title = name.removesuffix(short)
            many = counted[title + long]
            found[f"{title}, a delta"] = {way: (many[way] - few[way]) / (LONG - SHORT) for way in few}
    return found


def _count(subject: Subject, only: list[str] | None) -> dict[str, float]:
    counted = {}
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), subject) as (loop, port, above, gateway):
        if gateway.tracing is not None:
            gateway.tracing._recorder._gather = _LONGER
        for workload in WORKLOADS:
            if only is not None and workload.name not in only:
                continue
            ask = subject.ask(workload, port, above)
            calls = _STREAMS if workload.told.deltas >= SHORT else _CALLS

            async def go(ask: Ask = ask, calls: int = calls) -> None:
                await _ask(ask, calls)
                if gateway.tracing is not None:
                    await gateway.tracing.settle()

            loop.run_until_complete(go())
            goes = [
                count_instructions(lambda go=go: loop.run_until_complete(go()), without=is_not_ours)  # type: ignore[misc]
                for _ in range(_GOES)
            ]
            counted[workload.name] = min(goes) / calls
    return counted


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
