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
