"""Waiting for a state instead of for time, from a coroutine or from a thread alike.

`Signal` is a latch that any thread may set and that coroutines of any loop, or plain threads, may wait
for. `Gate` is two of them: the server tells that it has come so far, the test tells that it may go on.
An `asyncio.Event` cannot do this: it belongs to one loop, and setting it from elsewhere wakes nobody.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Final

PATIENCE: Final = 60.0
"""How many seconds a test waits for a state before it says what did not happen."""


class Signal:
    """Set once, seen by everyone, for ever."""

    __slots__ = ("_event", "_lock", "_waiters", "name")

    def __init__(self, name: str = "signal") -> None:
        self.name = name
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    def __repr__(self) -> str:
        return f"<Signal {self.name}: {'set' if self.is_set() else 'not set'}>"

    def set(self) -> None:
        """Set it, from any thread; setting it again changes nothing."""
        with self._lock:
            self._event.set()
            waiters, self._waiters = self._waiters, []
        for loop, future in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_wake, future)

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, within: float = PATIENCE) -> None:
        """Block this thread until it is set; `TimeoutError` with the signal's name otherwise."""
        if not self._event.wait(within):
            raise TimeoutError(f"{self.name} did not happen within {within} s")

    async def waited(self, within: float | None = PATIENCE) -> None:
        """Await it on the running loop; `None` waits for ever."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            if self._event.is_set():
                return
            self._waiters.append((loop, future))
        try:
            await asyncio.wait_for(future, within)
        except TimeoutError:
            raise TimeoutError(f"{self.name} did not happen within {within} s") from None
        finally:
            with self._lock:
                self._waiters = [waiter for waiter in self._waiters if waiter[1] is not future]


class Gate:
    """A place in an answer where the server stops until the test opens it."""

    __slots__ = ("opened", "reached")

    def __init__(self, name: str = "gate") -> None:
        self.reached = Signal(f"{name} reached")
        self.opened = Signal(f"{name} opened")

    def open(self) -> None:
        """Let the answer go on, from any thread, before or after the server gets here."""
        self.opened.set()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
