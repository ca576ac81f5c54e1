"""Any order of claims, renewals, signals, saves and moves of the clock: a store does what a model of a few lines does.

The model knows a lease as (holder, end, words). The clock goes both ways.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from every_store import STORES, Clock
from isthmus.ports import UNFINISHED, Held, Signal, Store
from isthmus.store.memory import MemoryStore
from stored import turn

T = TypeVar("T")
Lease = tuple[str, float, tuple[str, ...]]

HOLDERS = ("a", "b", "c")
holders = st.sampled_from(HOLDERS)
responses = st.sampled_from([("local", "r1"), ("local", "r2"), ("ann", "r3")])
owners = st.sampled_from(["local", "ann"])
lengths = st.integers(1, 8)


class Leases(RuleBasedStateMachine):
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
        self.leases: dict[tuple[str, str], Lease] = {}
        self.saved: dict[tuple[str, str], str] = {}

    @rule(at=responses, owner=owners, holder=holders, seconds=lengths)
    def claim(self, at: tuple[str, str], owner: str, holder: str, seconds: int) -> None:
        key = (owner, f"run:{at[1]}")
        live = self.live(key)
        free = live is None or live[0] == holder
        claimed = self.stores[holder].claim(key[1], owner=owner, holder=holder, seconds=seconds)
        assert self.run(claimed) == free
        if free:
            self.leases[key] = (holder, self.clock.at + seconds, live[2] if live else ())

    @rule(holder=holders, seconds=lengths)
    def renew(self, holder: str, seconds: int) -> None:
        mine = {key: self.leases[key] for key in sorted(self.leases) if (self.live(key) or ("",))[0] == holder}
        signals = tuple(Signal(*key, word) for key, (_, _, words) in mine.items() for word in words)
        assert self.run(self.stores[holder].renew(holder, seconds=seconds)) == Held(frozenset(mine), signals)
        self.leases |= dict.fromkeys(mine, (holder, self.clock.at + seconds, ()))

    @rule(at=responses, holder=holders)
    def release(self, at: tuple[str, str], holder: str) -> None:
        owner, name = at[0], f"run:{at[1]}"
        self.run(self.stores[holder].release(name, owner=owner, holder=holder))
        if self.leases.get((owner, name), ("",))[0] == holder:
            del self.leases[owner, name]

    @rule(at=responses, owner=owners, teller=holders, word=st.sampled_from(["cancel", "delete"]))
    def signal(self, at: tuple[str, str], owner: str, teller: str, word: str) -> None:
        key = (owner, f"run:{at[1]}")
        live = self.live(key)
        assert self.run(self.stores[teller].signal(key[1], word, owner=owner)) == (live is not None)
        if live is not None and word not in live[2]:
            self.leases[key] = (live[0], live[1], (*live[2], word))

    @rule(at=responses, holder=holders, status=st.sampled_from(["queued", "in_progress", "completed"]))
    def save(self, at: tuple[str, str], holder: str, status: str) -> None:
        owner, id = at
        live = self.live((owner, f"run:{id}"))
        allowed = self.saved.get(at, "queued") in UNFINISHED and (live is None or live[0] == holder)
        assert self.run(self.stores[holder].save(turn(id, status=status, owner=owner), holder=holder)) == allowed
        if allowed:
            self.saved[at] = status

    @precondition(lambda self: "completed" in self.saved.values())
    @rule()
    def start_over(self) -> None:
        for (owner, id), status in self.saved.items():
            if status == "completed":
                self.run(self.stores["a"].save(turn(id, status="queued", owner=owner)))
                self.saved[owner, id] = "queued"

    @rule(seconds=st.integers(-5, 10))
    def move_clock(self, seconds: int) -> None:
        self.clock.at += seconds

    @rule(holder=holders)
    def prune(self, holder: str) -> None:
        self.run(self.stores[holder].prune())
        self.leases = {key: lease for key, lease in self.leases.items() if self.live(key)}

    @invariant()
    def orphans_are_those_without_a_lease(self) -> None:
        orphans = {
            (owner, id)
            for (owner, id), status in self.saved.items()
            if status in UNFINISHED and self.live((owner, f"run:{id}")) is None
        }
        for store in set(self.stores.values()):
            assert {(record.owner, record.id) for record in self.run(store.expired())} == orphans

    def teardown(self) -> None:
        for store in set(self.stores.values()):
            self.run(store.aclose())
        self.runner.close()
        self.folder.cleanup()

    def live(self, key: tuple[str, str]) -> Lease | None:
        lease = self.leases.get(key)
        return lease if lease is not None and lease[1] > self.clock.at else None

    def run(self, question: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(question)

    def _open(self) -> Store:
        return STORES[self.store](Path(self.folder.name), now=self.clock)


class InMemory(Leases):
    store = "memory"


class InSqlite(Leases):
    store = "sqlite"


class InPostgres(Leases):
    store = "postgres"


TestInMemory = InMemory.TestCase
TestInMemory.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
TestInSqlite = InSqlite.TestCase
TestInSqlite.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestInPostgres = InPostgres.TestCase
TestInPostgres.settings = settings(max_examples=5, stateful_step_count=30, deadline=None)
