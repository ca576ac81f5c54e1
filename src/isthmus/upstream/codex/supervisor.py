"""Keeps one Codex process running: restart with backoff, and a snapshot of its health.

In: a way to start a process. Out: the running one, whenever somebody asks; while there is none, a failure that says why
and when to come back. The wait before a restart doubles with each failure, up to a bound, and starts over once a
process has stayed up long enough to count as healthy. Nothing that a start can raise ends the trying: the program may
just be being replaced.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import Generic, Literal, Protocol, TypeVar

from isthmus.errors import CredentialsRefused, IsthmusError, Overloaded, UpstreamFailed
from isthmus.log import tell

log = logging.getLogger("isthmus.codex")

State = Literal["idle", "starting", "ready", "waiting", "closed"]


class SupervisedProcess(Protocol):
    pid: int
    ended: asyncio.Event
    exit_code: int | None

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Backoff:
    first: float = 0.5
    longest: float = 30.0
    healthy_after: float = 30.0
    """A process that stayed up this long makes the next failure a first one again."""


@dataclass(frozen=True, slots=True)
class Health:
    state: State
    pid: int | None = None
    restarts: int = 0
    last_failure: str = ""


P = TypeVar("P", bound=SupervisedProcess)


class Supervisor(Generic[P]):
    """`process()` gives the running process, starting or awaiting one if there is none."""

    def __init__(
        self,
        start: Callable[[], Awaitable[P]],
        *,
        name: str = "codex",
        backoff: Backoff = Backoff(),  # noqa: B008 - frozen
        clock: Callable[[], float] = monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        patience: float = 20.0,
    ) -> None:
        self._start = start
        self._name = name
        self._backoff = backoff
        self._clock = clock
        self._sleep = sleep
        self._patience = patience
        self._state: State = "idle"
        self._process: P | None = None
        self._since = 0.0
        self._starts = 0
        self._failures = 0
        self._last_failure = ""
        self._error: Exception | None = None
        """Why the last start failed; a process that has run and ended is none."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start in the background, unless that has been done."""
        if self._state == "idle":
            self._enter("starting")
            self._task = asyncio.create_task(self._run())

    async def process(self) -> P:
        """Waits for a (re)start as long as patience lasts; a start that failed is told at once."""
        self.begin()
        try:
            async with asyncio.timeout(self._patience):
                while self._process is None or self._process.ended.is_set():
                    if self._state == "closed":
                        raise UpstreamFailed("the codex backend is shut down", status=503)
                    if self._state == "waiting" and self._error is not None:
                        raise self._told(self._error)
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError as error:
            raise self._unavailable() from error
        return self._process

    def health(self) -> Health:
        process = self._process
        running = process is not None and not process.ended.is_set()
        return Health(
            state=self._state if running or self._state != "ready" else "waiting",
            pid=process.pid if process is not None and running else None,
            restarts=max(0, self._starts - 1),
            last_failure=self._last_failure,
        )

    async def close(self) -> None:
        self._enter("closed")
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        process, self._process = self._process, None
        if process is not None:
            await process.close()

    async def _run(self) -> None:
        while True:
            process = await self._start_once()
            if process is not None:
                await process.ended.wait()
                self._note_end(process)
                await process.close()
            self._enter("waiting")
            await self._sleep(self._delay())

    async def _start_once(self) -> P | None:
        self._enter("starting")
        self._starts += 1
        try:
            process = await self._start()
        except Exception as error:
            self._note_failure(error)
            return None
        self._process, self._since, self._error = process, self._clock(), None
        self._enter("ready")
        return process

    def _note_failure(self, error: Exception) -> None:
        self._failures += 1
        reason = error.message if isinstance(error, IsthmusError) else repr(error)
        if reason != self._last_failure:  # once, not at each try
            trace = None if isinstance(error, IsthmusError) else error
            tell(log, "warning", "codex.unavailable", provider=self._name, reason=reason, trace=trace)
        self._last_failure, self._error = reason, error

    def _note_end(self, process: P) -> None:
        if self._clock() - self._since >= self._backoff.healthy_after:
            self._failures = 0
        self._failures += 1
        self._last_failure = f"the process ended with exit code {process.exit_code}"

    def _delay(self) -> float:
        return min(self._backoff.longest, self._backoff.first * 2.0 ** min(self._failures - 1, 30))

    def _enter(self, state: State) -> None:
        self._state = state
        self._changed.set()

    def _told(self, error: Exception) -> Exception:
        """A missing login needs somebody; whatever else keeps a program from starting may pass; a bug of ours rises."""
        match error:
            case CredentialsRefused():
                return CredentialsRefused(error.message, status=error.status, metadata=error.metadata)
            case IsthmusError():
                return self._unavailable()
        return error.with_traceback(None)

    def _unavailable(self) -> UpstreamFailed:
        return Overloaded(
            f"no codex process is ready ({self._last_failure or self._state}); it is being restarted, try again",
            status=503,
            retry_after=self._delay() if self._failures else self._backoff.first,
        )
