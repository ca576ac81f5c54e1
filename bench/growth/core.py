"""Cost against size in the pure core: tools, items, deltas. Instructions are exact; CPU is the least of some runs."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from bench.speed.counting import count
from bench.workloads import deltas, planning, streaming

from isthmus.bridge.toolset import toolset_of
from isthmus.errors import RequestRefused

Json = dict[str, Any]
TOOLS: Final = (1, 4, 16, 64, 128)
REFUSED: Final = (129, 250, 500, 1000)
ITEMS: Final = (1, 10, 100, 500, 1000, 2000, 5000)
DELTAS: Final = (10, 100, 1000, 10_000)


def rows(share: float = 1.0) -> list[Json]:
    """`share` of the largest sizes, for a quick look."""
    return [
        _row("tools, planned", "tools", _upto(TOOLS, share), lambda n: _anew(planning("", with_tools(n)).run)),
        _row("tools, planned again", "tools", _upto(TOOLS, share), lambda n: planning("", with_tools(n)).run),
        _refused(_upto(REFUSED, max(share, 0.3))),
        _row("input items, planned", "items", _upto(ITEMS, share), lambda n: planning("", with_items(n)).run),
        _row("deltas, each read alone", "deltas", _upto(DELTAS, share), lambda n: streaming("", deltas("text", n)).run),
    ]


def _upto(sizes: tuple[int, ...], share: float) -> tuple[int, ...]:
    return tuple(size for size in sizes if size <= sizes[-1] * share)


def _row(name: str, unit: str, sizes: tuple[int, ...], make: Callable[[int], Callable[[], object]]) -> Json:
    points, counted = [], []
    for size in sizes:
        run = make(size)
        points.append((size, round(least_of(run) * 1e6, 1)))
        if size <= 2000:
            counted.append((size, count(run)["instructions"]))
    return {"name": name, "unit": unit, "points": points, "instructions": counted}


def least_of(run: Callable[[], object]) -> float:
    """Seconds of CPU time."""
    run()
    gc.collect()
    least, until = float("inf"), time.thread_time() + 0.4
    for _ in range(60):
        began = time.thread_time()
        run()
        least = min(least, time.thread_time() - began)
        if time.thread_time() > until:
            break
    return least


def _refused(sizes: tuple[int, ...]) -> Json:
    """Beside what reading the JSON alone takes: whoever refuses need not have planned anything."""
    read = [(size, round(least_of(partial(msgspec.json.decode, with_tools(size))) * 1e6, 1)) for size in sizes]
    return {**_row("tools, refused", "tools", sizes, lambda n: refusing(with_tools(n))), "read": read}


def _anew(run: Callable[[], object]) -> Callable[[], object]:
    """As if nobody had sent these tools before."""

    def first() -> None:
        toolset_of.cache_clear()
        run()

    return first


def refusing(raw: bytes) -> Callable[[], object]:
    """A request that is refused, and as if nobody had sent its tools before."""
    run = _anew(planning("", raw).run)

    def refused() -> None:
        try:
            run()
        except RequestRefused:
            return
        raise AssertionError("not refused")

    return refused


def with_tools(count: int) -> bytes:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}, "count": {"type": "integer"}}}
    tools = [
        {"type": "function", "name": f"tool_{number}", "description": "Does what it says", "parameters": parameters}
        for number in range(count)
    ]
    return msgspec.json.encode({"model": "m", "input": "hi", "tools": tools})


def with_items(count: int) -> bytes:
    """Turns of a conversation: questions and answers."""
    items = [
        {"type": "message", "role": ("user", "assistant")[number % 2], "content": f"{number} some words of a turn " * 4}
        for number in range(count)
    ]
    items[-1]["role"] = "user"
    return msgspec.json.encode({"model": "m", "input": items})
