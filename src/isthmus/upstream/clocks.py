"""How long somebody is waited for, at little cost: every request and every piece of a stream is waited for.

`asyncio.timeout` is right for both, and takes a dozen calls of Python each time. A `Deadline` takes three. `Silence`
has one timer for all pieces of a stream, which is set anew only when it rings too early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """`with Deadline(seconds):` raises `TimeoutError` when what is awaited inside takes longer; else like
    `asyncio.timeout`: a cancellation from outside stays one."""

    __slots__ = ("_before", "_rang", "_seconds", "_task", "_timer")
    _before: int
    _task: asyncio.Task[object]
    _timer: asyncio.TimerHandle

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rang = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "only a task can be interrupted"
        self._task, self._before = task, task.cancelling()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._ring)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._timer.cancel()
        if self._rang and self._task.uncancel() <= self._before and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _ring(self) -> None:
        self._rang = True
        self._task.cancel()


class Silence:
    """Calls `ring` when one wait, between `begin` and `end`, has taken so many seconds."""

    __slots__ = ("_loop", "_ring", "_seconds", "_since", "_timer")

    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self._seconds = seconds
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._since: float | None = None
        """When the wait began; `None`: nobody waits."""
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._look)

    def end(self) -> None:
        self._since = None

    def stop(self) -> None:
        """Nothing is waited for any more."""
        self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._since is None:
            return
        left = self._since + self._seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._ring()
