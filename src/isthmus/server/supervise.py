"""`server.workers`: several processes behind one address, and the one that looks after them.

    supervisor ── opens the address, starts the workers, hears their signs of life; serves nobody itself
      ├─ worker 1 ── the whole gateway; accepts from the shared socket whenever it is free
      └─ worker 2 ── the same, on the same store: leases say which of them is at what

A worker that died is started anew; one whose loop gives no sign of life is asked for its stack, ended and started anew.
What either of them was at, the others take over when its leases run out. SIGTERM and SIGINT end all of them in good
order, a second one at once. SIGHUP replaces them one by one: each new one reads the configuration as it is now, and the
old one leaves when the new one serves, so that no stream is cut.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from isthmus.config.schema import Config
from isthmus.errors import ConfigError
from isthmus.log import tell
from isthmus.server.listen import Listening, listen
from isthmus.server.post import ASKED, READY, VARIABLE, Post
from isthmus.server.signals import on_signals

log = logging.getLogger("isthmus.workers")

_START: Final = 60.0
"""Seconds that a worker has until it serves."""
_LOOK: Final = 1.0
"""Seconds between two looks at a worker's signs of life: it has less time once it serves."""
_SAYING: Final = 1.0
"""Seconds that a stuck worker has to say where it stands."""
_SHORTEST: Final = 0.5
_LONGEST: Final = 30.0
"""Seconds before a worker that failed at its start is tried again, at first and at most."""
_BRIEF: Final = 10.0
"""Seconds of a life after which a worker's death is no reason to wait with the next one."""
_AFTER: Final = 15.0
"""Seconds beyond the grace period after which a worker that was told to end is ended."""


def check_workers(config: Config) -> None:
    """Raises `ConfigError` where several processes cannot work together."""
    if config.server.workers == 1:
        return
    if sys.platform == "win32":
        raise ConfigError("several workers need a system with fork and signals; set 1", param="server.workers")
    if config.store.url.startswith("memory:"):
        words = "workers share what they keep, and `memory:` cannot be shared; use a file, as `sqlite:isthmus.db`"
        raise ConfigError(words, param="server.workers")


class Failed(Exception):
    """The first worker could not start; it has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


class _Worker:
    """One process, as it is seen from here."""

    def __init__(self, number: int, process: Process, pipe: int) -> None:
        self.number = number
        self.process = process
        self.ready = asyncio.Event()
        self._pipe = pipe
        self._loop = asyncio.get_running_loop()
        self.begun = self.heard = self._loop.time()
        self._loop.add_reader(pipe, self._hear)

    @property
    def facts(self) -> dict[str, Any]:
        return {"worker": self.number, "pid": self.process.pid}

    def _hear(self) -> None:
        said = os.read(self._pipe, 4096)
        if not said:
            self.deafen()
            return
        self.heard = self._loop.time()
        if READY in said:
            self.ready.set()

    def deafen(self) -> None:
        if self._pipe >= 0:
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)


class Supervisor:
    def __init__(self, config: Config, command: list[str], listening: Listening) -> None:
        """`command` starts one worker: this program, as it was started itself."""
        self._command = command
        self._listening = listening
        self._count = config.server.workers
        self._patience = config.server.stuck_worker
        self._grace = config.server.grace
        self._serving: dict[int, _Worker] = {}
        """By number: those that took their place, and were not told to leave it."""
        self._living: set[_Worker] = set()
        self._pauses: dict[int, float] = {}
        """Before the next attempt to fill a place."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._rolling = False

    async def run(self, started: Callable[[str], None]) -> None:
        """Until told to stop. Raises `Failed` if not even the first worker can start."""
        on_signals(self._stop, self._hurry, self._hang_up)
        failed = await self._fill(1)  # alone: it makes the store what it must be
        if failed is not None and not self._stop.is_set():
            raise Failed(failed)
        await asyncio.gather(*(self._keep_filling(number) for number in range(2, self._count + 1)))
        if not self._stop.is_set():
            started(self._listening.address)
        await self._stop.wait()
        await self._end()

    # ── one place ──────────────────────────────────────────────────────────────────────────────────

    async def _fill(self, number: int) -> int | None:
        """Start a worker, and give it its place once it serves; the one that had it leaves. The exit code of one that
        never came to serve, else `None`."""
        worker = await self._start(number)
        ready = asyncio.create_task(worker.ready.wait())
        ended = asyncio.create_task(worker.process.wait())
        await asyncio.wait({ready, ended}, timeout=_START, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if not worker.ready.is_set():
            worker.signal(signal.SIGKILL)
            return await ended or 1
        ended.cancel()
        before = self._serving.get(number)
        self._serving[number] = worker
        if before is not None:
            self._dismiss(before)
        if worker.process.returncode is not None:  # gone again: its watcher found it in no place
            self._vacate(worker)
        return None

    async def _keep_filling(self, number: int) -> None:
        """Again and again, with longer and longer pauses: whatever is wrong may be mended meanwhile."""
        while not self._stop.is_set() and await self._fill(number) is not None:
            await self._pause(number)

    async def _pause(self, number: int) -> None:
        pause = self._pauses.get(number, _SHORTEST)
        self._pauses[number] = min(pause * 2, _LONGEST)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), pause)

    async def _start(self, number: int) -> _Worker:
        read, write = os.pipe()
        os.set_blocking(read, False)
        listener = self._listening.socket.fileno()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, VARIABLE: Post(number, listener, write).spell()},
                pass_fds=(listener, write),
                process_group=0,  # Ctrl-C is for us: it reaches them as the one word that we pass on
            )
        finally:
            os.close(write)
        worker = _Worker(number, process, read)
        self._living.add(worker)
        tell(log, "info", "worker.started", **worker.facts)
        self._do(self._watch(worker))
        return worker

    async def _watch(self, worker: _Worker) -> None:
        """From its start to its end; then its place is filled anew, if it had one."""
        ended = asyncio.create_task(worker.process.wait())
        while not ended.done():
            silent = asyncio.get_running_loop().time() - worker.heard
            patience = self._patience if worker.ready.is_set() else _START
            if silent >= patience:
                await self._put_down(worker, silent)
                break
            await asyncio.wait({ended}, timeout=min(max(patience - silent, 0.05), _LOOK))
        await ended
        worker.deafen()
        self._living.discard(worker)
        if self._serving.get(worker.number) is worker and not self._stop.is_set():
            self._vacate(worker)
        else:
            tell(log, "info", "worker.ended", **worker.facts, code=worker.process.returncode)

    def _vacate(self, worker: _Worker) -> None:
        """It left its place without being told to."""
        del self._serving[worker.number]
        code, effect = worker.process.returncode, "another one is started"
        tell(log, "error", "worker.died", **worker.facts, code=code, effect=effect)
        self._do(self._refill(worker))

    async def _refill(self, worker: _Worker) -> None:
        if asyncio.get_running_loop().time() - worker.begun < _BRIEF:
            await self._pause(worker.number)  # the next one may fare no better
        else:
            self._pauses.pop(worker.number, None)
        await self._keep_filling(worker.number)

    async def _put_down(self, worker: _Worker, silent: float) -> None:
        words = "its stack follows, and another one is started"
        tell(log, "error", "worker.stuck", **worker.facts, seconds=round(silent, 1), effect=words)
        if ASKED is not None and worker.ready.is_set():
            worker.signal(ASKED)
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.process.wait(), _SAYING)
        worker.signal(signal.SIGKILL)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # ── all of them ────────────────────────────────────────────────────────────────────────────────

    def _hang_up(self) -> None:
        if not self._rolling and not self._stop.is_set():
            self._rolling = True
            self._do(self._roll())

    async def _roll(self) -> None:
        """One by one; one that does not come to serve leaves the others as they are."""
        tell(log, "info", "workers.rolling", workers=self._count)
        try:
            for number in range(1, self._count + 1):
                if self._stop.is_set():
                    return
                if await self._fill(number) is not None:
                    words = "those that are left serve as before; the new one has said what is wrong"
                    tell(log, "error", "workers.not_replaced", worker=number, effect=words)
                    return
            tell(log, "info", "workers.replaced", workers=self._count)
        finally:
            self._rolling = False

    def _dismiss(self, worker: _Worker) -> None:
        worker.signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(self._grace + _AFTER, worker.signal, signal.SIGKILL)

    async def _end(self) -> None:
        for worker in self._living:
            self._dismiss(worker)
        hurrying = asyncio.create_task(self._hurry.wait())
        ending = asyncio.create_task(self._all_over())
        await asyncio.wait({hurrying, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            for worker in self._living:
                worker.signal(signal.SIGTERM)  # the second one
        await ending
        hurrying.cancel()

    async def _all_over(self) -> None:
        while self._tasks:
            await asyncio.wait(set(self._tasks))


async def supervise(config: Config, command: list[str], started: Callable[[str], None]) -> None:
    """Serve with `server.workers` processes until told to stop."""
    listening = listen(config.server)
    try:
        await Supervisor(config, command, listening).run(started)
    finally:
        listening.close()
