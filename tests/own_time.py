"""Time that belongs to the test: a loop whose clock is stopped, and put forward by hand.

Everything of ours that waits asks its event loop for the time. So an hour passes at once, whatever the machine is busy
with, and where the clock stands still only an event can make a thing happen.

    run_in_own_time(main())     # and inside: clock().stop_clock(), clock().skip(3600)
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class OwnTimeLoop(asyncio.SelectorEventLoop):
    """Runs like any other loop until it is told otherwise. To be called on its own thread."""

    _skipped = 0.0
    _stopped_at: float | None = None

    def time(self) -> float:
        return super().time() + self._skipped if self._stopped_at is None else self._stopped_at

    def skip(self, seconds: float) -> None:
        """What was to happen within so many seconds happens now."""
        if self._stopped_at is None:
            self._skipped += seconds
        else:
            self._stopped_at += seconds

    def stop_clock(self) -> None:
        """No timer fires from now on, except by `skip`."""
        self._stopped_at = self.time()

    def start_clock(self) -> None:
        """Time goes on from where it stands."""
        assert self._stopped_at is not None
        self._skipped, self._stopped_at = self._stopped_at - super().time(), None


def run_in_own_time(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`; `clock()` gives the loop."""
    with asyncio.Runner(loop_factory=OwnTimeLoop) as runner:
        return runner.run(main)


def clock() -> OwnTimeLoop:
    """The running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, OwnTimeLoop)
    return loop


async def turns(count: int = 50) -> None:
    """Let the loop go round so often: all that can happen without time and without the network has happened then."""
    for _ in range(count):
        await asyncio.sleep(0)


class StillLoop(OwnTimeLoop):
    """Its clock stands still at a fixed hour, and it can say whether there is anything left to do."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped_at = 1_000_000.0

    def busy(self) -> bool:
        return bool(self._ready) or any(timer._when <= self.time() for timer in self._timers())  # type: ignore[attr-defined]

    def next_timer(self) -> float | None:
        return min((timer._when for timer in self._timers()), default=None)

    def go_to(self, when: float) -> None:
        self._stopped_at = max(when, self.time())

    def _timers(self) -> list[Any]:
        return [timer for timer in self._scheduled if not timer._cancelled]  # type: ignore[attr-defined]


class OwnTime:
    """A loop that goes on only when the test says so: the same steps always lead to the same end."""

    def __init__(self) -> None:
        self.loop = StillLoop()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """What needs no time."""
        return self.loop.run_until_complete(work)

    def launch(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self.loop.create_task(work)
        self.quiet()
        return task

    def quiet(self) -> None:
        """All that can happen without time happens."""
        self.run(self._quiet())

    def jump(self, seconds: float) -> None:
        """The clock is put forward at once, as after a machine has slept."""
        self.loop.skip(seconds)
        self.quiet()

    def flow(self, seconds: float) -> None:
        """Time goes by: everything happens when it is due."""
        end = self.loop.time() + seconds
        self.quiet()
        while (due := self.loop.next_timer()) is not None and due <= end:
            self.loop.go_to(due)
            self.quiet()
        self.loop.go_to(end)
        self.quiet()

    def flow_until(self, task: asyncio.Task[Any], patience: float) -> Any:
        end = self.loop.time() + patience
        while not task.done() and self.loop.time() < end:
            self.flow(0.5)
        assert task.done(), f"`{task.get_name()}` waits for ever"
        return task.result()

    def close(self) -> None:
        for _ in range(5):
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.quiet()
        self.run(self.loop.shutdown_asyncgens())
        self.loop.close()

    async def _quiet(self) -> None:
        for _ in range(20_000):
            await asyncio.sleep(0)
            if not self.loop.busy():
                return
        raise AssertionError("something goes round for ever")
