"""Where a large request is worked on, so that nobody else has to wait for it: one thread beside the loop.

The interpreter lets the loop have its turn every few milliseconds meanwhile. One thread, because several would only
take turns with each other, and because large requests then wait for each other, never small ones for them. What is
small is done on the spot: changing threads costs more than it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


class Aside:
    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def do(self, work: Callable[[], _T], *, heavy: bool) -> _T:
        if not heavy:
            return work()
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="isthmus-aside")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """What is being worked on ends by itself; what waits is dropped."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False, cancel_futures=True)
