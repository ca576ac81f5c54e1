"""A few worker processes, shared by all: bounded in number, in time, in memory and in what waits for them.

In: a kind of job and its bytes. Out: its result, or `WorkNotDone` that names the limit that it met. There are two
lanes, so that nobody's long job stops the short ones of everybody else:

    quick   every job begins here; one that is not done within `quick` seconds leaves the lane …
    slow    … and goes on here if there is a place; if not, its process is killed, and it begins anew when there is

A job that meets the deadline is killed with its process. Processes start when they are first needed and end when
they were idle for long enough, so that an idle gateway has none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from isthmus.errors import WorkNotDone
from isthmus.log import tell
from isthmus.workers.child import BY_THE_CLOCK
from isthmus.workers.process import Died, Failed, TooLarge, Worker, start_worker

log = logging.getLogger("isthmus.workers")

_A_MOMENT: Final = 0.01


@dataclass(frozen=True, slots=True)
class PoolOptions:
    """`runners` says what does each kind of job, as `module:function`; the rest are the settings of `[checks]`."""

    runners: Mapping[str, str]
    workers: int
    slow_workers: int
    quick: float
    deadline: float
    idle: float
    memory: int
    queue: int
    wait: float


class WorkerPool:
    def __init__(self, options: PoolOptions) -> None:
        self._options = options
        self._quick = asyncio.Semaphore(options.workers)
        self._slow = asyncio.Semaphore(options.slow_workers)
        self._waiting = 0
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False
        self.started = 0
        """How many processes it ever started."""

    @property
    def waiting(self) -> int:
        """Jobs that no process has begun."""
        return self._waiting

    @property
    def busy(self) -> int:
        """Processes that work."""
        return len(self._busy)

    @property
    def pids(self) -> list[int]:
        """The processes that there are now."""
        return [worker.pid for worker in (*self._idle, *self._busy)]

    async def run(self, kind: str, payload: bytes) -> bytes:
        """Have a job done; raises `WorkNotDone`."""
        options = self._options
        quick = min(options.quick, options.deadline)
        async with self._seat(self._quick):
            job = await self._begin(kind, payload)
            try:
                await asyncio.wait([job.call], timeout=quick)
                moves = not job.call.done() and not self._slow.locked()
                if moves:
                    await self._slow.acquire()  # there is a place: this does not wait
            except BaseException:
                self._drop(job)
                raise
            if job.call.done():
                return self._result(job)
            if not moves:
                self._drop(job)
        if moves:
            try:
                return await self._to_the_end(job, options.deadline - quick)
            finally:
                self._slow.release()
        async with self._seat(self._slow):
            return await self._to_the_end(await self._begin(kind, payload), options.deadline)

    async def aclose(self) -> None:
        """End all processes. Calling it again does nothing."""
        self._closed = True
        for worker in (*self._idle, *self._busy):
            self._end(worker, kill=worker in self._busy)
        while self._ending:
            await asyncio.wait(list(self._ending))

    async def _begin(self, kind: str, payload: bytes) -> _Job:
        worker = await self._take()
        self._busy.add(worker)
        begun = worker.cpu_seconds() or 0.0
        call = asyncio.create_task(worker.call(kind, payload), name=f"worker {worker.pid}: {kind}")
        return _Job(worker, kind, call, begun)

    async def _to_the_end(self, job: _Job, seconds: float) -> bytes:
        """Wait until it is done, or has had its time: its own, so that a busy machine refuses nobody."""
        loop = asyncio.get_running_loop()
        latest, left = loop.time() + seconds * BY_THE_CLOCK, seconds
        while left > 0 and not job.call.done():
            try:
                await asyncio.wait([job.call], timeout=left)
            except BaseException:
                self._drop(job)
                raise
            spent = job.worker.cpu_seconds()
            left = 0.0 if spent is None else min(seconds - (spent - job.begun), latest - loop.time())
            left = max(left, _A_MOMENT) if left > 0 else left
        if job.call.done():
            return self._result(job)
        try:
            at = await job.worker.stack()
        finally:
            self._drop(job)
        facts: dict[str, Any] = {"pid": job.worker.pid, "job": job.kind, "seconds": self._options.deadline, "at": at}
        tell(log, "warning", "worker.deadline", **facts, next="it is replaced")
        raise WorkNotDone(f"it took longer than {self._options.deadline:g} s (`checks.deadline`)")

    def _result(self, job: _Job) -> bytes:
        try:
            data = job.call.result()
        except Failed as error:
            self._put_back(job.worker)
            tell(log, "error", "worker.failed", pid=job.worker.pid, reason=error)
            raise WorkNotDone("the worker process failed at it; the log says more", code="work_failed") from error
        except TooLarge as error:
            self._put_back(job.worker)
            raise self._too_large() from error
        except Died as error:
            self._end(job.worker, kill=True)
            tell(log, "warning", "worker.died", pid=job.worker.pid)
            raise self._too_large() from error
        self._put_back(job.worker)
        return data

    def _too_large(self) -> WorkNotDone:
        memory = self._options.memory
        return WorkNotDone(f"it broke its worker process, which may take {memory:,} bytes (`checks.memory`)")

    @asynccontextmanager
    async def _seat(self, lane: asyncio.Semaphore) -> AsyncIterator[None]:
        """A place in a lane: in the order of asking, after a bounded wait, behind a bounded number of others."""
        if self._closed:
            raise _busy("the gateway is shutting down")
        if lane.locked():
            await self._queue_for(lane)
        else:
            await lane.acquire()
        try:
            yield
        finally:
            lane.release()

    async def _queue_for(self, lane: asyncio.Semaphore) -> None:
        options = self._options
        if self._waiting >= options.queue:
            raise _busy(f"{options.queue} others are waiting (`checks.queue`)")
        self._waiting += 1
        try:
            async with asyncio.timeout(options.wait):
                await lane.acquire()
        except TimeoutError:
            raise _busy(f"no worker process was free within {options.wait:g} s (`checks.wait`)") from None
        finally:
            self._waiting -= 1

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.idle is not None:
                worker.idle.cancel()
            if worker.alive:
                return worker
            self._end(worker, kill=True)
        self.started += 1
        options = self._options
        try:
            return await start_worker(options.runners, memory=options.memory, deadline=options.deadline)
        except (Died, OSError) as error:
            tell(log, "error", "worker.not_started", reason=error)
            raise _busy("no worker process could be started; the log says more") from error

    def _put_back(self, worker: Worker) -> None:
        self._busy.discard(worker)
        if worker.retiring or self._closed or not worker.alive:
            self._end(worker, kill=False)
            return
        self._idle.append(worker)
        worker.idle = asyncio.get_running_loop().call_later(self._options.idle, self._retire, worker)

    def _retire(self, worker: Worker) -> None:
        if worker in self._idle:
            self._end(worker, kill=False)

    def _drop(self, job: _Job) -> None:
        """Nobody wants its result any more, or nobody may wait for it."""
        job.call.cancel()
        self._end(job.worker, kill=True)

    def _end(self, worker: Worker, *, kill: bool) -> None:
        self._busy.discard(worker)
        if worker in self._idle:
            self._idle.remove(worker)
        self._keep(worker.end(kill=kill))

    def _keep(self, ending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(ending, name="end a worker")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    worker: Worker
    kind: str
    call: asyncio.Task[bytes]
    begun: float
    """The processor time that its process had taken before."""


def _busy(why: str) -> WorkNotDone:
    return WorkNotDone(f"{why}; try again in a moment", code="workers_busy")
