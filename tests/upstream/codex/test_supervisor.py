from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from isthmus.errors import ConfigError, CredentialsRefused, Overloaded, UpstreamFailed
from isthmus.upstream.codex.supervisor import Backoff, Supervisor


class FakeProcess:
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

    def __init__(self, *failures: Exception | None, **options: Any) -> None:
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
        assert (health.state, health.pid, health.restarts) == ("ready", 1, 0)
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
        assert health.restarts == 4
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
            with pytest.raises(Overloaded, match="no binary") as failed:
                await world.supervisor.process()
            assert (failed.value.status, failed.value.retry_after) == (503, 0.5)
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


def test_a_missing_login_is_told_as_what_it_is() -> None:
    async def check() -> None:
        world = World(CredentialsRefused("log in", metadata={"provider": "codex"}))
        world.awake.clear()
        told = []
        for _ in range(2):
            with pytest.raises(CredentialsRefused, match="log in") as refused:
                await world.supervisor.process()
            assert refused.value.provider == "codex"
            told.append(refused.value)
        assert told[0] is not told[1], "each caller may change its own"
        await world.supervisor.close()

    _run(check)


def test_nothing_that_a_start_raises_ends_the_trying() -> None:
    """A bug of ours rises where somebody waits, and the next start may go well all the same."""

    async def check() -> None:
        world = World(ZeroDivisionError(), FileNotFoundError("gone"))
        world.awake.clear()
        with pytest.raises(ZeroDivisionError):
            await world.supervisor.process()
        assert world.supervisor.health().last_failure == "ZeroDivisionError()"
        world.awake.set()
        await world.begun.wait()
        assert (await world.supervisor.process()).pid == 1
        await world.supervisor.close()

    _run(check)


def test_the_log_tells_of_a_trouble_once(caplog: pytest.LogCaptureFixture) -> None:
    async def check() -> None:
        world = World(*(ConfigError("no binary"),) * 3, ConfigError("no folder"))
        world.supervisor.begin()
        await world.begun.wait()
        await world.supervisor.close()

    _run(check)
    told = [record.getMessage() for record in caplog.records if "codex.unavailable" in record.getMessage()]
    assert [line.rpartition("reason=")[2] for line in told] == ["'no binary'", "'no folder'"]


def test_after_closing_nothing_starts_again() -> None:
    async def check() -> None:
        world = World()
        await world.supervisor.close()
        with pytest.raises(UpstreamFailed, match="shut down"):
            await world.supervisor.process()
        assert world.started == []

    _run(check)
