"""Where what is large is worked on, so that nobody else has to wait for it: one thread beside the loop.

The interpreter lets the loop have its turn meanwhile, whenever it asks for one. One thread, because several would
only take turns with each other, and because large requests then wait for each other, never small ones for them. What
is small is done on the spot: changing threads costs more than it does.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

_T = TypeVar("_T")

_SWITCH: Final = 0.0005
"""Seconds after which the loop gets its turn while something is worked on here. The interpreter's own 5 ms are for each
turn, and the loop asks for one with every socket that it reads: twenty of them would make it 100."""


class Aside:
    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None
        self._working = 0
        self._interval = 0.0

    @property
    def waiting(self) -> int:
        """Pieces of work that are not done yet, the one that is worked on included."""
        return self._working

    async def do(self, work: Callable[[], _T], *, heavy: bool) -> _T:
        """Whoever is cancelled meanwhile waits until it is over: nobody else touches what is worked on."""
        if not heavy:
            return work()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="isthmus-aside")
        self._begin()
        try:
            return await _outcome(self._thread.submit(work))
        finally:
            self._end()

    def close(self) -> None:
        """What is being worked on ends by itself; what waits is dropped."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        if not self._working:
            self._interval = sys.getswitchinterval()
            sys.setswitchinterval(min(_SWITCH, self._interval))
        self._working += 1

    def _end(self) -> None:
        self._working -= 1
        if not self._working:
            sys.setswitchinterval(self._interval)


async def _outcome(future: Future[_T]) -> _T:
    result = asyncio.wrap_future(future)
    try:
        return await asyncio.shield(result)
    except asyncio.CancelledError:
        if not future.cancel():
            while not result.done():
                with suppress(asyncio.CancelledError):  # once is enough: it is raised below
                    await asyncio.wait([result])
            result.exception()  # nobody is there any more to whom it could be told
        raise
