"""Large work goes aside, small work is done on the spot, and the loop turns meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import msgspec
import pytest

from gateway.house import Upstream, make_gateway
from isthmus.bridge.parse import parse_request
from isthmus.gateway.aside import Aside
from isthmus.gateway.caller import LOCAL
from isthmus.store.memory import MemoryStore


async def test_what_is_small_is_done_on_the_spot_and_what_is_heavy_beside_the_loop() -> None:
    aside = Aside()
    here = threading.get_ident()
    assert await aside.do(threading.get_ident, heavy=False) == here
    there = await aside.do(threading.get_ident, heavy=True)
    assert there != here
    assert await aside.do(threading.get_ident, heavy=True) == there, "there is one thread"
    aside.close()


async def test_the_loop_turns_while_something_heavy_is_worked_on() -> None:
    aside, turned = Aside(), threading.Event()
    asyncio.get_running_loop().call_later(0, turned.set)
    assert await aside.do(lambda: turned.wait(30), heavy=True), "the loop had its turn while this waited for it"
    aside.close()


async def test_what_rises_there_rises_here() -> None:
    aside = Aside()

    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await aside.do(fail, heavy=True)
    aside.close()


async def test_it_can_be_closed_at_any_time_and_used_again() -> None:
    aside = Aside()
    aside.close()
    assert await aside.do(lambda: 1, heavy=True) == 1
    aside.close()
    assert await aside.do(lambda: 2, heavy=True) == 2
    aside.close()


MESSAGE = {"role": "user", "content": "hi"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA"}
LARGEST: dict[str, dict[str, Any]] = {
    "items": {"input": [MESSAGE] * 10_000},
    "parts": {"input": [{"role": "user", "content": [IMAGE] * 20_000}]},
    "values": {"input": "x", "metadata": {"a": "b"}, "odd": [[]] * 95_000},
    "bytes": {"input": "x" * 49_000_000},
    "text full of brackets": {"input": 'f(a, [b]) {"c": d}\n' * 2_000_000},
}


@pytest.mark.parametrize("body", LARGEST.values(), ids=LARGEST)
async def test_the_largest_request_that_is_let_in_takes_less_than_fifty_milliseconds_of_the_loop(
    body: dict[str, Any],
) -> None:
    gateway = make_gateway(MemoryStore(), Upstream())
    raw = msgspec.json.encode({"model": "one/m", **body})
    least = float("inf")
    for _ in range(3):
        began = time.thread_time()
        request = await gateway.read(raw, parse_request)
        await gateway.create(LOCAL, request)
        least = min(least, time.thread_time() - began)
    await gateway.aclose()
    assert least < 0.05
