"""Old responses are forgotten, by age and by size, and a failing store does not end the pruning."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from isthmus.config import load_config
from isthmus.errors import ConfigError, RequestRefused
from isthmus.gateway.retention import Retention, keep_pruning, prune_once
from isthmus.ports import EventBatch, Pruned
from isthmus.store.memory import MemoryStore
from isthmus.wiring import running_gateway
from own_time import clock, run_in_own_time, turns
from stored import turn

DAY = 86_400


async def test_what_is_older_than_the_limit_is_forgotten() -> None:
    store = MemoryStore()
    await store.save(turn("old", at=0.0))
    await store.save(turn("new", at=9.0 * DAY))
    await prune_once(store, Retention(keep_days=5), now=10.0 * DAY)
    assert await store.load("old") is None
    assert await store.load("new") is not None


async def test_without_limits_nothing_is_forgotten() -> None:
    store = MemoryStore()
    await store.save(turn("old", at=0.0))
    assert (await prune_once(store, Retention(), now=10_000.0 * DAY)).responses == 0
    assert not Retention().limited


async def test_events_go_by_their_own_age() -> None:
    store = MemoryStore()
    for id, at in (("old", 0.0), ("new", 90.0)):
        await store.save(turn(id, at=at), events=EventBatch(0, (b"0",)))
    rule = Retention(keep_events=100)
    assert rule.limited
    assert (await prune_once(store, rule, now=150.0)).responses == 0
    assert await store.events("new") == [b"0"]
    with pytest.raises(RequestRefused, match="no longer kept from its beginning"):
        await store.events("old")


def test_events_that_go_sooner_are_looked_for_more_often() -> None:
    pauses = [Retention(keep_events=seconds).pause for seconds in (0, 1, 600, 86_400)]
    assert pauses == [3600, 60, 600, 3600]


async def test_pruning_goes_on_after_a_failure() -> None:
    class Failing(MemoryStore):
        asked = 0

        async def prune(self, **limits: Any) -> Pruned:
            type(self).asked += 1
            if self.asked == 2:
                enough.set()
            raise ConfigError("the disk is full", code="store_unavailable")

    enough = asyncio.Event()
    task = asyncio.create_task(keep_pruning(Failing(), Retention(keep_days=1, every=0.0), lambda: 0.0))
    async with asyncio.timeout(60):
        await enough.wait()
    task.cancel()


def test_a_gateway_prunes_at_its_start_and_then_every_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting(MemoryStore):
        pruned = 0

        async def prune(self, **limits: Any) -> Pruned:
            self.pruned += 1
            return await super().prune(**limits)

    monkeypatch.setattr("isthmus.store.memory.MemoryStore", Counting)
    file = tmp_path / "isthmus.toml"
    file.write_text('models.demo = false\nstore.url = "memory:"\nproviders.main.uses = "vllm"\n')

    async def look() -> list[int]:
        clock().stop_clock()
        async with running_gateway(load_config(file, environ={}).config) as gateway:
            assert isinstance(gateway.store, Counting)
            counts = []
            for seconds in (0, 3599, 1, 3599, 1):
                clock().skip(seconds)
                await turns()
                counts.append(gateway.store.pruned)
            return counts

    assert run_in_own_time(look()) == [1, 1, 2, 2, 3]
