"""Random operations on the memory and the SQLite store: the same answers, whatever happens, and after a restart."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from isthmus.errors import RequestRefused
from isthmus.ports import EventBatch, Store
from isthmus.store.memory import MemoryStore
from isthmus.store.sqlite.store import SqliteStore
from stored import message, turn

LIMITS = {"max_event_bytes": 300}
NUMBERS = st.integers(0, 11)
OWNERS = st.sampled_from(["", "ann"])
STATUSES = st.sampled_from(["completed", "incomplete", "failed", "in_progress", "queued"])
# Few words, so that contents are shared; ids that repeat over different contents, and none.
ITEMS = st.lists(
    st.builds(message, st.sampled_from(["a", "b", "c" * 700]), st.sampled_from([None, "msg_x", "msg_y"])), max_size=3
).map(tuple)
NAMES = st.sampled_from(["msg_x", "msg_y", "in0_r1", "in1_r2", "out0_r3", "in0_r4", "nothing"])


class SameAnswers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.memory = MemoryStore(**LIMITS)
        self.sqlite = self.open()
        self.clock = 0.0

    def open(self) -> SqliteStore:
        return SqliteStore(Path(self.folder.name) / "store.db", **LIMITS)

    def teardown(self) -> None:
        self.runner.run(self.sqlite.aclose())
        self.runner.close()
        self.folder.cleanup()

    def same(self, question: Callable[[Store], Awaitable[Any]]) -> Any:
        """Both answers, or both refusals, must be equal."""
        mine, theirs = (self.runner.run(answer(question, store)) for store in (self.memory, self.sqlite))
        assert mine == theirs
        return mine

    @rule(
        number=NUMBERS,
        parent=st.none() | st.integers(-1, 10),
        owner=OWNERS,
        status=STATUSES,
        input=ITEMS,
        output=ITEMS,
        padding=st.sampled_from([0, 600]),
        events=st.none() | st.integers(0, 5),
    )
    def save(self, number: int, parent: int | None, owner: str, events: int | None, padding: int, **parts: Any) -> None:
        self.clock += 1
        # A parent is always an earlier number, or one that never exists: chains cannot close into a ring.
        previous = None if parent is None or parent >= number else f"r{parent}"
        record = turn(f"r{number}", previous, at=self.clock, owner=owner, padding="p" * padding, **parts)
        batch = None if events is None else EventBatch(events, (b"{}",) * 20)
        self.same(lambda store: store.save(record, events=batch))

    @rule(number=NUMBERS, owner=OWNERS)
    def delete(self, number: int, owner: str) -> None:
        self.same(lambda store: store.delete(f"r{number}", owner=owner))

    @rule(number=NUMBERS, owner=OWNERS, status=STATUSES, only_from=st.sampled_from([(), ("queued", "in_progress")]))
    def update_status(self, number: int, owner: str, status: str, only_from: tuple[str, ...]) -> None:
        fields = {"error": {"code": "x"}, "padding": "q" * 700}
        self.same(
            lambda store: store.update_status(f"r{number}", status, owner=owner, only_from=only_from, fields=fields)
        )

    @rule(number=NUMBERS, owner=OWNERS, first=st.integers(0, 60), count=st.integers(0, 30))
    def append_events(self, number: int, owner: str, first: int, count: int) -> None:
        batch = EventBatch(first, tuple(b"[%d]" % (first + index) for index in range(count)))
        self.same(lambda store: store.append_events(f"r{number}", batch, owner=owner))

    @rule(number=NUMBERS, owner=OWNERS, depth=st.sampled_from([1, 2, 3, 100]), after=st.integers(-2, 40))
    def ask(self, number: int, owner: str, depth: int, after: int) -> None:
        id = f"r{number}"
        self.same(lambda store: store.load(id, owner=owner))
        self.same(lambda store: store.chain(id, owner=owner, max_depth=depth))
        self.same(lambda store: store.events(id, owner=owner, after=after))

    @rule(names=st.lists(NAMES), owner=OWNERS)
    def ask_for_items(self, names: list[str], owner: str) -> None:
        self.same(lambda store: store.items(names, owner=owner))

    @rule(
        number=NUMBERS,
        owner=OWNERS,
        limit=st.integers(1, 4),
        after=st.none() | NAMES,
        order=st.sampled_from(["asc", "desc"]),
    )
    def ask_for_a_page(self, number: int, owner: str, **page: Any) -> None:
        self.same(lambda store: store.list_input_items(f"r{number}", owner=owner, **page))

    @precondition(lambda self: self.clock > 0)
    @rule(back=st.integers(0, 8))
    def prune(self, back: int) -> None:
        self.same(lambda store: count_pruned(store, self.clock - back))

    @rule()
    def restart(self) -> None:
        self.runner.run(self.sqlite.aclose())
        self.sqlite = self.open()

    @invariant()
    def hold_the_same(self) -> None:
        self.same(count)
        self.same(export)
        self.same(lambda store: store.unfinished())


async def answer(question: Callable[[Store], Awaitable[Any]], store: Store) -> Any:
    try:
        return await question(store)
    except (RequestRefused, ValueError) as error:
        return type(error), str(error), getattr(error, "code", None)


async def count(store: Store) -> tuple[Any, ...]:
    stats = await store.stats()
    return stats.responses, stats.deleted, stats.unfinished, stats.pieces, stats.oldest, stats.newest


async def export(store: Store) -> list[bytes]:
    return [line async for line in store.export()]


async def count_pruned(store: Store, older_than: float) -> int:
    return (await store.prune(older_than=older_than)).responses


SameAnswers.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
test_memory_and_sqlite_give_the_same_answers = SameAnswers.TestCase
