"""What a request leads to is counted for the one whose task it is, and for nobody after it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.house import asking
from isthmus.bridge.limits import DEFAULT_LIMITS
from isthmus.conduct.aside import Aside
from isthmus.errors import IsthmusError
from isthmus.gateway.history import load_past
from isthmus.gateway.led import Count, count_as_before, count_by, leads_to
from isthmus.store.memory import MemoryStore
from stored import message, turn


@contextmanager
def counted_by(count: Count) -> Iterator[None]:
    before = count_by(count)
    try:
        yield
    finally:
        count_as_before(before)


async def test_each_task_counts_its_own() -> None:
    counts: dict[str, list[int]] = {"a": [], "b": []}

    async def serve(name: str, size: int) -> None:
        with counted_by(counts[name].append):
            await asyncio.sleep(0)
            leads_to(size)
            await asyncio.sleep(0)
            leads_to(size + 1)
        leads_to(1000)

    await asyncio.gather(serve("a", 1), serve("b", 10))
    assert counts == {"a": [1, 2], "b": [10, 11]}


async def test_nothing_is_no_news_and_nobody_needs_to_listen() -> None:
    leads_to(5)
    heard: list[int] = []
    with counted_by(heard.append):
        leads_to(0)
    assert heard == []


async def test_turns_and_items_are_counted_before_anything_is_made_of_them() -> None:
    store = MemoryStore()
    items = message("x" * 900, "msg_a"), message("y")
    await store.save(turn("r1", input=items))
    heard: list[int] = []

    def refuse(size: int) -> None:
        heard.append(size)
        raise IsthmusError("too much", code="server_is_overloaded")

    reference = {"type": "item_reference", "id": "msg_a"}
    for request, least in ((asking(previous_response_id="r1"), 900), (asking(input=[reference] * 3), 2700)):
        with counted_by(refuse), pytest.raises(IsthmusError, match="too much"):
            await load_past(store, request, owner="local", max_chain=10, limits=DEFAULT_LIMITS, aside=Aside())
        assert least < heard.pop() < least + 600
    with counted_by(heard.append):
        await load_past(store, asking(), owner="local", max_chain=10, limits=DEFAULT_LIMITS, aside=Aside())
    assert heard == []
