"""Any order of queueing, taking, ends and moves of the clock: a store does what a model of a few lines does.

The model knows a notice as (queued, due, attempts, holder, given up). The clock goes both ways.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from every_store import STORES, Clock
from isthmus.ports import Backlog, Notice, Store
from isthmus.store.memory import MemoryStore
from stored import turn

T = TypeVar("T")
HOLDERS = ("a", "b", "c")
MOST = 3
holders = st.sampled_from(HOLDERS)
endpoints = st.sampled_from(["hook", "other"])
responses = st.sampled_from([f"r{number}" for number in range(6)])
lengths = st.integers(1, 8)


class Entry:
    def __init__(self, number: int, endpoint: str, about: str, now: float, given_up: bool) -> None:
        self.number = number
        self.endpoint = endpoint
        self.about = about
        self.queued = self.due = now
        self.attempts = 0
        self.holder = ""
        self.given_up = given_up


class Outbox(RuleBasedStateMachine):
    """Each holder speaks through a store object of its own, where the medium can be shared."""

    store: ClassVar[str]

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        first = self._open()
        alone = isinstance(first, MemoryStore)
        self.stores = {holder: first if alone or holder == "a" else self._open() for holder in HOLDERS}
        self.model: dict[str, Entry] = {}
        self.count = 0

    @rule(about=responses, endpoint=endpoints, holder=holders, ended=st.booleans())
    def queue(self, about: str, endpoint: str, holder: str, ended: bool) -> None:
        self.count += 1
        id, store = f"n{self.count}", self.stores[holder]
        notices = [Notice(id, endpoint, "response.completed", about, b"{}", most=MOST)]
        if ended:
            assert self.run(store.save(turn(about), notices=notices))
        else:
            self.run(store.save(turn(about, status="in_progress")))
            assert self.run(store.update_status(about, "failed", only_from=("in_progress",), notices=notices))
        mine = [entry for entry in self.model.values() if entry.endpoint == endpoint]
        if any(entry.about == about for entry in mine):
            return
        full = sum(not entry.given_up for entry in mine) >= MOST
        self.model[id] = Entry(self.count, endpoint, about, self.clock.at, full)
        given_up = sorted(
            (id for id, entry in self.model.items() if entry.endpoint == endpoint and entry.given_up),
            key=lambda id: (self.model[id].due, self.model[id].number),
        )
        for id in given_up[:-MOST] if full else ():
            del self.model[id]

    @rule(endpoint=endpoints, holder=holders, seconds=lengths, most=st.integers(1, 3))
    def take(self, endpoint: str, holder: str, seconds: int, most: int) -> None:
        due = sorted(
            (id for id in self.waiting(endpoint) if self.model[id].due <= self.clock.at),
            key=lambda id: (self.model[id].due, self.model[id].number),
        )[:most]
        taken = self.run(self.stores[holder].take_due(endpoint, holder=holder, seconds=seconds, most=most))
        assert [each.notice.id for each in taken] == due
        for id, each in zip(due, taken, strict=True):
            entry = self.model[id]
            entry.attempts, entry.holder, entry.due = entry.attempts + 1, holder, self.clock.at + seconds
            assert (each.attempts, each.age, each.due) == (entry.attempts, self.clock.at - entry.queued, seconds)

    @rule(number=st.integers(1, 40), holder=holders)
    def deliver(self, number: int, holder: str) -> None:
        id = self.pick(number)
        mine = id in self.model and self.model[id].holder == holder
        assert self.run(self.stores[holder].delivered(id, holder=holder)) == mine
        if mine:
            del self.model[id]

    @rule(number=st.integers(1, 40), holder=holders, seconds=st.none() | lengths)
    def put_off(self, number: int, holder: str, seconds: int | None) -> None:
        id = self.pick(number)
        mine = id in self.model and self.model[id].holder == holder
        done = self.stores[holder].put_off(id, holder=holder, seconds=seconds, reason="why")
        assert self.run(done) == mine
        if mine:
            entry = self.model[id]
            entry.holder, entry.given_up, entry.due = "", seconds is None, self.clock.at + (seconds or 0)

    @rule(number=st.none() | st.integers(1, 40), holder=holders, forget=st.booleans())
    def look_after(self, number: int | None, holder: str, forget: bool) -> None:
        store, id = self.stores[holder], None if number is None else self.pick(number)
        if id is None:
            chosen = [each for each, entry in self.model.items() if entry.given_up]
        else:
            free = id in self.model and (not self.model[id].holder or self.model[id].due <= self.clock.at)
            chosen = [id] if free else []
        deed = store.forget_deliveries(id) if forget else store.deliver_again(id)
        assert self.run(deed) == len(chosen)
        for each in chosen:
            entry = self.model.pop(each)
            if not forget:
                entry.queued = entry.due = self.clock.at
                entry.attempts, entry.holder, entry.given_up = 0, "", False
                self.model[each] = entry

    @rule(holder=holders, known=st.sets(endpoints))
    def tidy(self, holder: str, known: set[str]) -> None:
        self.run(self.stores[holder].tidy_outbox(known=frozenset(known), give_up=10, keep=15))
        for id, entry in list(self.model.items()):
            if entry.given_up and entry.due <= self.clock.at - 15:
                del self.model[id]
            elif (
                not entry.given_up
                and entry.endpoint not in known
                and max(entry.due, entry.queued + 10) <= self.clock.at
            ):
                entry.given_up, entry.due, entry.holder = True, self.clock.at, ""

    @rule(seconds=st.integers(-3, 10))
    def move_clock(self, seconds: int) -> None:
        self.clock.at += seconds

    @invariant()
    def everybody_sees_the_same(self) -> None:
        for store in set(self.stores.values()):
            found = {each.notice.id: each for each in self.run(store.deliveries())}
            assert found.keys() == self.model.keys()
            for id, entry in self.model.items():
                shown = (found[id].given_up, found[id].due, found[id].attempts, found[id].notice.about)
                assert shown == (entry.given_up, entry.due - self.clock.at, entry.attempts, entry.about)
            for endpoint in ("hook", "other"):
                waiting = self.waiting(endpoint)
                left = sum(entry.endpoint == endpoint and entry.given_up for entry in self.model.values())
                assert self.run(store.backlog(endpoint)) == Backlog(len(waiting), left)
                soonest = min((self.model[id].due for id in waiting), default=None)
                expected = None if soonest is None else soonest - self.clock.at
                assert self.run(store.next_due(endpoint)) == expected

    def teardown(self) -> None:
        for store in set(self.stores.values()):
            self.run(store.aclose())
        self.runner.close()
        self.folder.cleanup()

    def pick(self, number: int) -> str:
        """One that is there, mostly."""
        ids = sorted(self.model)
        return ids[number % len(ids)] if ids and number % 7 else "nobody"

    def waiting(self, endpoint: str) -> list[str]:
        return [id for id, entry in self.model.items() if entry.endpoint == endpoint and not entry.given_up]

    def run(self, question: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(question)

    def _open(self) -> Store:
        return STORES[self.store](Path(self.folder.name), now=self.clock)


class InMemory(Outbox):
    store = "memory"


class InSqlite(Outbox):
    store = "sqlite"


class InPostgres(Outbox):
    store = "postgres"


TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestInSqlite = InSqlite.TestCase
TestInSqlite.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestInPostgres = InPostgres.TestCase
TestInPostgres.settings = settings(max_examples=5, stateful_step_count=30, deadline=None)
