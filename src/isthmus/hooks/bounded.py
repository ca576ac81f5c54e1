"""Code of somebody else, called so that nobody waits for it longer than allowed.

What is plain runs in a thread of its own, what is `async` in a task of its own. Neither can be made to end: one that is
too slow is left alone, and keeps its place until it does. So a hook that hangs takes places, never the loop, and when
all of them are taken every further call is told so within the same time.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any


class TooSlow(Exception):
    """It did not answer in time."""


class Bounded:
    def __init__(self, timeout: float, at_once: int) -> None:
        """`timeout`: seconds of one call, the wait for a place included. `at_once`: how many may be under way."""
        self.timeout = timeout
        self._free = at_once
        self._waiting: list[asyncio.Future[None]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        """Held on to: the loop alone would forget them."""

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What it gives back. Raises `TooSlow`, and what it raises."""
        task = asyncio.create_task(self._placed(function, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._over)
        try:
            done, _ = await asyncio.wait([task], timeout=self.timeout)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not done:
            task.cancel()
            raise TooSlow
        return task.result()

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # of one that was left alone nobody asks

    async def _placed(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        await self._take()
        if inspect.iscoroutinefunction(function):
            try:
                return await function(*arguments)
            finally:
                self._leave()
        answer = await self._in_thread(function, arguments)
        return await answer if inspect.isawaitable(answer) else answer

    async def _in_thread(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        context = copy_context()

        def settle(value: Any, error: BaseException | None) -> None:
            self._leave()
            if answer.done():
                return
            if error is not None:
                answer.set_exception(error)
            else:
                answer.set_result(value)

        def work() -> None:
            value: Any = None
            failed: BaseException | None = None
            try:
                value = context.run(function, *arguments)
            except StopIteration as error:  # no future takes one
                failed = RuntimeError("StopIteration").with_traceback(error.__traceback__)
            except BaseException as error:
                failed = error
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, value, failed)

        threading.Thread(target=work, name="isthmus-hook", daemon=True).start()
        return await answer

    async def _take(self) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        while self._waiting:
            turn = self._waiting.pop(0)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
