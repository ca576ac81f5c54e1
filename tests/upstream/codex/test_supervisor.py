from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from isthmus.errors import ConfigError, IsthmusError, UpstreamFailed
from isthmus.upstream.codex.supervisor import Backoff, Supervisor


class FakeProcess:
    malformed = 0
    stderr = "tail"

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended = asyncio.Event()
        self.exit_code: int | None = None
        self.closed = 0

    def crash(self) -> None:
        self.exit_code = 9
        self.ended.set()

    async def close(self) -> None:
        self.closed += 1
        self.ended.set()


class World:
    """A clock that only sleeping moves, and starts that fail as told."""

    def __init__(self, *failures: IsthmusError | None, **options: Any) -> None:
        self.now = 0.0
        self.naps: list[float] = []
        self.started: list[FakeProcess] = []
        self.failures = list(failures)
        self.awake = asyncio.Event()
        self.awake.set()
        self.begun = asyncio.Event()
        self.supervisor: Supervisor[FakeProcess] = Supervisor(
            self.start, clock=lambda: self.now, sleep=self.sleep, **options
        )

    async def start(self) -> FakeProcess:
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        self.started.append(FakeProcess(len(self.started) + 1))
        self.begun.set()
        return self.started[-1]

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        await self.awake.wait()
        self.now += seconds
        await asyncio.sleep(0)

    async def restarted(self) -> FakeProcess:
        """Crash the running process and give the next one."""
        process = await self.supervisor.process()
        process.crash()
        return await self.supervisor.process()


def _run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


def test_one_start_serves_everybody() -> None:
    async def check() -> None:
        world = World()
        first, second = await asyncio.gather(world.supervisor.process(), world.supervisor.process())
        assert first is second
        assert len(world.started) == 1
        health = world.supervisor.health()
        assert (health.state, health.pid, health.restarts, health.stderr) == ("ready", 1, 0, "tail")
        await world.supervisor.close()
        assert first.closed == 1
        assert world.supervisor.health().state == "closed"

    _run(check)


def test_a_crash_is_followed_by_a_restart_with_growing_waits() -> None:
    async def check() -> None:
        world = World(backoff=Backoff(first=1, longest=4, healthy_after=1000))
        for _ in range(4):
            await world.restarted()
        assert world.naps == [1, 2, 4, 4]
        health = world.supervisor.health()
        assert (health.restarts, health.failures_in_a_row) == (4, 4)
        assert "exit code 9" in health.last_failure
        assert all(process.closed == 1 for process in world.started[:-1])
        await world.supervisor.close()

    _run(check)


def test_the_wait_starts_over_after_health() -> None:
    async def check() -> None:
        world = World(backoff=Backoff(first=1, longest=60, healthy_after=100))
        await world.restarted()
        await world.restarted()
        world.now += 100
        await world.restarted()
        assert world.naps == [1, 2, 1]
        await world.supervisor.close()

    _run(check)


def test_a_start_that_cannot_work_is_told_at_once_and_tried_again() -> None:
    async def check() -> None:
        world = World(ConfigError("no binary"), ConfigError("no binary"))
        world.awake.clear()
        for _ in range(2):
            with pytest.raises(ConfigError, match="no binary"):
                await world.supervisor.process()
        assert world.supervisor.health().state == "waiting"
        world.awake.set()
        await world.begun.wait()
        assert (await world.supervisor.process()).pid == 1
        assert world.naps == [0.5, 1.0]
        await world.supervisor.close()

    _run(check)


def test_patience_ends_with_a_retry_hint() -> None:
    async def check() -> None:
        world = World(patience=0.01)
        process = await world.supervisor.process()
        world.awake.clear()
        process.crash()
        with pytest.raises(UpstreamFailed, match="try again") as failed:
            await world.supervisor.process()
        assert (failed.value.code, failed.value.status) == ("server_is_overloaded", 503)
        assert failed.value.retry_after == 0.5
        await world.supervisor.close()

    _run(check)


def test_a_bug_in_starting_rises_instead_of_being_waited_for() -> None:
    async def check() -> None:
        async def start() -> FakeProcess:
            raise ZeroDivisionError

        supervisor: Supervisor[FakeProcess] = Supervisor(start)
        with pytest.raises(ZeroDivisionError):
            await supervisor.process()

    _run(check)


def test_after_closing_nothing_starts_again() -> None:
    async def check() -> None:
        world = World()
        await world.supervisor.close()
        with pytest.raises(UpstreamFailed, match="shut down"):
            await world.supervisor.process()
        assert world.started == []

    _run(check)
