"""What a request costs from its socket to its answer, counted exactly: every door, whole and streamed.

Run in a process of its own (`fresh.py`): a gateway as it comes, with SQLite and traces, serves on a real socket; an
upstream and a client stand in the same loop and are not counted. What is: all Python code that runs for a request, in
the loop and in the threads that write, until its trace is written. A timer can only add to it: the least of several
goes counts.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypedDict
from urllib.parse import urlsplit

import uvloop
from bench.gateways import upstream
from bench.gateways.client import Ask, run
from bench.gateways.subjects import DEFAULT, Subject
from bench.gateways.workloads import Workload
from bench.speed.instructions import count_instructions, in_threads

from isthmus.config import load_config
from isthmus.gateway.gateway import Gateway
from isthmus.server.serve import serve

CALLS: Final = 4
"""On one connection, in each go."""
GOES: Final = 6
DOORS: Final = (
    Workload("door, Responses, whole", "responses", "text-10-0"),
    Workload("door, Responses, 50 deltas", "responses", "text-50-0", stream=True),
    Workload("door, Responses, a tool call", "responses", "call-50-0", stream=True, part="tool"),
    Workload("door, Chat, whole", "chat", "text-10-0"),
    Workload("door, Chat, 50 deltas", "chat", "text-50-0", stream=True),
    Workload("door, Messages, whole", "messages", "text-10-0"),
    Workload("door, Messages, 50 deltas", "messages", "text-50-0", stream=True),
    Workload("door, WebSocket, 50 deltas", "websocket", "text-50-0", stream=True),
)
TIMERS: Final = ("observe/vitals.py", "access/book.py", "store/sqlite/changes.py", "gateway/orphans.py")
"""What goes by the clock and is no request's."""


class Plant(TypedDict):
    """A regression on purpose: a function that turns a loop of nothing before it does its work."""

    at: str
    """`module:name`, or `module:Class.name`."""
    turns: int
    only: list[str]
    """Doors that are looked at."""
    goes: int
    """What is as slow as that needs fewer of them."""


def main() -> None:
    """In: nothing, or a regression to plant. Out: the counts of each door."""
    given: Plant | None = json.load(sys.stdin)
    if given is not None:
        plant(given)
    logging.disable(logging.INFO)
    threading.settrace(in_threads)
    with tempfile.TemporaryDirectory() as folder:
        planted = (given["only"], given["goes"]) if given else (None, GOES)
        print(json.dumps(count_doors(Path(folder), *planted)))


def count_doors(folder: Path, only: list[str] | None = None, times: int = GOES) -> dict[str, dict[str, int]]:
    counted = {}
    with running(folder) as (loop, port, above, gateway):
        for workload in DOORS:
            if only is not None and workload.name not in only:
                continue
            ask = DEFAULT.ask(workload, port, above)

            async def go(ask: Ask = ask) -> None:
                seen = await run(ask, CALLS, 1)
                assert not seen.wrong, seen.wrong
                assert seen.calls == CALLS
                await gateway.tracing.settle()

            loop.run_until_complete(go())
            loop.run_until_complete(go())
            goes = [
                count_instructions(lambda go=go: loop.run_until_complete(go()), without=is_not_ours)  # type: ignore[misc]
                for _ in range(times)
            ]
            counted[workload.name] = {"instructions": min(goes) // CALLS}
    return counted


@contextmanager
def running(folder: Path, subject: Subject = DEFAULT) -> Iterator[tuple[asyncio.AbstractEventLoop, int, int, Gateway]]:
    """A gateway, usually as it comes, on a loop that runs when told to: the loop, its port, an upstream's port, and
    itself."""
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    stop, told = asyncio.Event(), loop.create_future()
    server = loop.run_until_complete(loop.create_server(upstream.Connection, "127.0.0.1", 0))
    above = server.sockets[0].getsockname()[1]
    serving = loop.create_task(_serve(folder, subject, above, stop, told))
    address, gateway = loop.run_until_complete(told)
    port = urlsplit(address).port
    assert port is not None
    yield loop, port, above, gateway
    stop.set()
    loop.run_until_complete(serving)
    server.close()


async def _serve(
    folder: Path, subject: Subject, above: int, stop: asyncio.Event, told: asyncio.Future[tuple[str, Gateway]]
) -> None:
    assert subject.start is not None
    arguments, _ = subject.start(folder, 0, above)
    config = load_config(Path(arguments[-1]), environ={"HOME": str(folder)}).config
    with suppress(asyncio.CancelledError):
        await serve(config, started=lambda address, gateway: told.set_result((address, gateway)), stop=stop)


def is_not_ours(file: str) -> bool:
    return "/bench/" in file or file.endswith(TIMERS)


def plant(given: Plant) -> None:
    module, _, name = given["at"].partition(":")
    holder: Any = import_module(module)
    *outer, last = name.split(".")
    for each in outer:
        holder = getattr(holder, each)
    real: Callable[..., Any] = getattr(holder, last)
    turns = given["turns"]

    @wraps(real)
    def slower(*arguments: Any, **named: Any) -> Any:
        for _ in range(turns):
            pass
        return real(*arguments, **named)

    slower.__code__ = slower.__code__.replace(co_filename=real.__code__.co_filename)  # so that it is counted as theirs
    setattr(holder, last, slower)


if __name__ == "__main__":
    main()
