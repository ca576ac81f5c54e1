"""The queue and the thread behind it: bounded, never in anybody's way, and honest about what was lost."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from msgspec.structs import replace

from isthmus.errors import StoreUnavailable
from isthmus.observe.traces import recorder as module
from isthmus.observe.traces.bodies import Bodies
from isthmus.observe.traces.cleaning import Cleaner
from isthmus.observe.traces.draft import Draft
from isthmus.observe.traces.recorder import Keeping, Recorder
from isthmus.ports import Accepted, Answered, Ended, Planned, Received, Sent
from isthmus.ports.packed import PackedTrace
from isthmus.scrub import Scrubber
from isthmus.store.traces.sqlite import SqliteTraces
from isthmus.testing.fold import plan_for
from waiting import until_soon


class Held(SqliteTraces):
    """A store whose writes wait until they are let, and may fail."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()
        self.let.set()
        self.entered = threading.Event()
        self.broken = False
        self.groups: list[int] = []

    def forget(self, owner: str, response: str) -> None:
        self.let.wait(60)
        if self.broken:
            raise StoreUnavailable("the disk is full")
        super().forget(owner, response)

    def keep(self, traces: Sequence[PackedTrace]) -> None:
        self.entered.set()
        self.let.wait(60)
        if self.broken:
            raise StoreUnavailable("the disk is full")
        self.groups.append(len(traces))
        super().keep(traces)


@asynccontextmanager
async def recording(store: Any = None, *, gather: float = 0.0, **keeping: Any) -> AsyncIterator[Recorder]:
    recorder = Recorder(store or Held(), Bodies(b"k" * 32), Cleaner(Scrubber()), Keeping(**keeping), gather=gather)
    recorder.start()
    try:
        yield recorder
    finally:
        if isinstance(recorder.store, Held):
            recorder.store.let.set()
        await recorder.aclose()


def draft(id: str, weight: int = 10, run: str = "", *, small: bool = False) -> Draft:
    """A request; a `small` one is packed when it is put."""
    run = run or (f"resp_{id}" if small else "")
    received = Received(id, "local", "", "", "POST", "/v1/responses", 70, 0.1) if run else None
    fact = Answered(id, run, "local", "", "", "POST", "/v1/responses", 200, None, False, 0.5, received=received)
    planned = Planned(run, id, "local", plan_for(), {}) if run else None
    made = Draft(1.0, 1.5, at=1_000.0, weight=weight, planned=planned, answered=fact)
    steps: list[Any] = [(0.1, Sent(run, "p", "m", 1, body={"model": "m"}))] + [(0.2, Accepted(run, 0.1))] * 5
    response = {"output": [], "instructions": None, "isthmus": {"diagnostics": []}}
    made.ended = Ended(run, "local", "", "", 0, "refused", None, None, None, 0.5, None, 0, 0, steps=steps)
    if small:
        made.ended = replace(made.ended, response=response, steps=steps[:2])
    return made


async def ids(recorder: Recorder) -> list[str]:
    await recorder.settle()
    return [each.id for each in (await recorder.store.list(None, order="asc", limit=500)).traces]


async def test_what_is_put_is_written_in_its_order() -> None:
    async with recording() as recorder:
        for number in range(20):
            recorder.put(draft(f"req_{number}"))
        assert await ids(recorder) == [f"req_{number}" for number in range(20)]
        assert (recorder.kept, recorder.lost) == (20, 0)


async def test_a_flood_loses_traces_counts_them_and_delays_nobody() -> None:
    store = Held()
    store.let.clear()
    async with recording(store, max_queued=50) as recorder:
        recorder.put(draft("req_first"))
        await until_soon(store.entered.is_set)
        slowest = 0.0
        for number in range(5_000):
            before = time.thread_time()
            recorder.put(draft(f"req_{number}"))
            slowest = max(slowest, time.thread_time() - before)
        assert recorder.lost == 4_950
        assert slowest < 0.05, "whoever puts one waits for nothing"
        store.let.set()
        assert len(await ids(recorder)) == 51
        assert (recorder.kept, recorder.lost) == (51, 4_950)
        recorder.put(draft("req_after"))
        assert (await ids(recorder))[-1] == "req_after"


async def test_small_ones_are_written_in_their_order_with_the_others() -> None:
    store = Held()
    store.let.clear()
    async with recording(store) as recorder:
        for number in range(30):
            recorder.put(draft(f"req_{number}", small=number % 3 != 0))
        store.let.set()
        assert await ids(recorder) == [f"req_{number}" for number in range(30)]
        assert (recorder.kept, recorder.lost) == (30, 0)


async def test_so_many_that_one_group_is_full_or_half_of_the_queue_do_not_wait_for_others() -> None:
    async with recording(gather=60.0, max_queued=20) as recorder:
        for number in range(11):
            recorder.put(draft(f"req_{number}"))
        await until_soon(lambda: recorder.kept == 11)


async def test_small_ones_are_bounded_like_others() -> None:
    store = Held()
    store.let.clear()
    async with recording(store, max_queued=3) as recorder:
        recorder.put(draft("req_first", small=True))
        await until_soon(store.entered.is_set)
        for number in range(5):
            recorder.put(draft(f"req_{number}", small=True))
        assert recorder.lost == 2
        store.let.set()
        assert await ids(recorder) == ["req_first", "req_0", "req_1", "req_2"]
        recorder.put(draft("req_after", small=True))
        assert (await ids(recorder))[-1] == "req_after"
    async with recording(store := Held(), max_queued_bytes=40) as recorder:
        store.let.clear()
        recorder.put(draft("req_first", small=True))
        await until_soon(store.entered.is_set)
        for number in range(5):
            recorder.put(draft(f"req_{number}", small=True))
        assert recorder.lost > 0
        store.let.set()
        await recorder.settle()
        recorder.put(draft("req_after", small=True))
        assert (await ids(recorder))[-1] == "req_after"


async def test_what_they_hold_on_to_is_bounded_too_and_a_large_one_alone_finds_room() -> None:
    store = Held()
    store.let.clear()
    async with recording(store, max_queued_bytes=1_000) as recorder:
        recorder.put(draft("req_huge", weight=1_000_000))
        await until_soon(store.entered.is_set)
        for number in range(5):
            recorder.put(draft(f"req_{number}", weight=300))
        assert recorder.lost == 2
        store.let.set()
        assert await ids(recorder) == ["req_huge", "req_0", "req_1", "req_2"]


async def test_many_share_one_transaction() -> None:
    store = Held()
    store.let.clear()
    async with recording(store) as recorder:
        recorder.put(draft("req_first"))
        await until_soon(store.entered.is_set)
        for number in range(600):
            recorder.put(draft(f"req_{number}"))
        store.let.set()
        await recorder.settle()
        assert store.groups == [1, 512, 88]


async def test_a_disk_that_fails_is_told_once_and_once_more_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    store = Held()
    async with recording(store) as recorder:
        with caplog.at_level(logging.WARNING, "isthmus.traces"):
            store.broken = True
            for number in range(3):
                recorder.put(draft(f"req_{number}"))
                await recorder.settle()
            store.broken = False
            recorder.put(draft("req_good"))
            assert await ids(recorder) == ["req_good"]
        assert recorder.lost == 3
        told = [record.getMessage().split()[0] for record in caplog.records]
        assert told == ["traces.unavailable", "traces.available"]


@pytest.mark.parametrize("small", [False, True], ids=["by reference", "packed"])
async def test_one_that_cannot_be_told_is_lost_alone(caplog: pytest.LogCaptureFixture, small: bool) -> None:
    broken = draft("req_broken", small=small)
    broken.last = cast(Any, "no moment")
    async with recording() as recorder:
        for each in (draft("req_1"), broken, draft("req_2")):
            recorder.put(each)
        assert await ids(recorder) == ["req_1", "req_2"]
        assert recorder.lost == 1
    assert "trace.broken" in caplog.text


@pytest.mark.parametrize("small", [False, True], ids=["by reference", "packed"])
async def test_what_is_forgotten_before_it_is_written_is_never_written_with_its_content(small: bool) -> None:
    async with recording() as recorder:
        recorder.put(draft("req_1", run="resp_1", small=small))
        recorder.forget("local", "resp_1")
        recorder.forget("local", "resp_2")
        recorder.put(draft("req_2", run="resp_2", small=small))
        recorder.put(draft("req_3", run="resp_3", small=small))
        await recorder.settle()
        found = [await recorder.store.find(None, f"req_{number}") for number in (1, 2, 3)]
        assert [each is not None and each.summary.deleted for each in found] == [True, True, False]


async def test_more_deletes_than_may_wait_are_not_taken_before_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FORGETTING", 3)
    store = Held()
    async with recording(store) as recorder:
        for number in range(4):
            recorder.put(draft(f"req_{number}", run=f"resp_{number}"))
        await recorder.settle()
        store.let.clear()
        for number in range(3):
            await recorder.room_to_forget()
            recorder.forget("local", f"resp_{number}")
        waits = asyncio.create_task(recorder.room_to_forget())
        await until_soon(lambda: recorder.delayed == 1)
        assert not waits.done()
        store.let.set()
        await waits
        recorder.forget("local", "resp_3")
        await recorder.settle()
        found = [await store.find(None, f"req_{number}") for number in range(4)]
        assert [each is not None and each.summary.deleted for each in found] == [True] * 4


async def test_where_there_never_is_room_a_delete_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MOST_FORGETTING": 1, "_PATIENCE": 2, "_SETTLE": 0.01}.items():
        monkeypatch.setattr(module, name, value)
    store = Held()
    store.let.clear()
    async with recording(store) as recorder:
        recorder.forget("local", "resp_1")
        with pytest.raises(StoreUnavailable, match="nothing was deleted, try again"):
            await recorder.room_to_forget()


async def test_a_delete_that_cannot_be_written_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AGAIN", 0.01)
    store = Held()
    async with recording(store) as recorder:
        recorder.put(draft("req_1", run="resp_1"))
        await recorder.settle()
        store.broken = True
        recorder.forget("local", "resp_1")
        await recorder.settle()
        found = await store.find(None, "req_1")
        assert found is not None
        assert not found.summary.deleted
        store.broken = False
        await until_soon(lambda: recorder._asked == recorder._done)
        found = await store.find(None, "req_1")
        assert found is not None
        assert found.summary.deleted


async def test_what_is_too_old_goes_in_steps_between_which_others_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK", 0.0)
    monkeypatch.setattr(module, "_STEP", 2)
    store = Held()
    async with recording(store, max_age=3600) as recorder:
        for number in range(9):
            recorder.put(draft(f"req_{number}"))  # of 1970
        fresh = draft("req_fresh")
        fresh.at = time.time()
        recorder.put(fresh)

        async def only_the_fresh_one() -> bool:
            return await ids(recorder) == ["req_fresh"]

        for _ in range(1_000):
            if await only_the_fresh_one():
                break
            await asyncio.sleep(0.005)
        assert await only_the_fresh_one()


async def test_at_the_end_all_that_was_put_is_written() -> None:
    store = Held()
    kept: list[int] = []
    close = store.close
    store.close = lambda: (kept.append(sum(store.groups)), close())[1]  # type: ignore[func-returns-value,method-assign]
    async with recording(store) as recorder:
        for number in range(30):
            recorder.put(draft(f"req_{number}"))
    assert kept == [30]
