"""`server.workers`: several processes behind one address, and the one that looks after them.

    supervisor ── opens the address, starts the workers, hears their signs of life; serves nobody itself
      ├─ worker 1 ── the whole gateway; accepts from the shared socket whenever it is free
      └─ worker 2 ── the same, on the same store: leases say which of them is at what

A worker that died is started anew; one whose loop gives no sign of life is asked for its stack, ended and started anew.
What either of them was at, the others take over when its leases run out. SIGTERM and SIGINT end all of them in good
order, a second one at once. With SIGHUP each of them reads the configuration again (`reload`). Where something changed
that only a new process can take up they are replaced one by one: the old one leaves when the new one serves, and goes
on with its streams for as long as after any other reload.

Over the line to each worker (`line`) come its signs of life and what it has counted. What one was told to switch, the
others read in the store, as those on other machines do (`switches`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec

from isthmus.config.reload import ADDRESS, plan_reload
from isthmus.config.schema import Config
from isthmus.errors import ConfigError, IsthmusError
from isthmus.log import tell
from isthmus.server.census import Census
from isthmus.server.line import Ask, Collect, Line, Message, Ready, Told
from isthmus.server.listen import Listening, listen
from isthmus.server.post import ASKED, VARIABLE, Post
from isthmus.server.reload import Read
from isthmus.server.signals import REPLACED, Ending, on_signals

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

    def __init__(self, number: int, process: Process, say: Callable[[_Worker, Message], None]) -> None:
        """`say`: who is told what it says, beyond that it lives."""
        self.number = number
        self.process = process
        self.ready = asyncio.Event()
        self._say = say
        self._loop = asyncio.get_running_loop()
        self.begun = self.heard = self._loop.time()
        self.line = Line(self._hear, lambda: None)

    @property
    def facts(self) -> dict[str, Any]:
        return {"worker": self.number, "pid": self.process.pid}

    def _hear(self, message: Message) -> None:
        self.heard = self._loop.time()
        if isinstance(message, Ready):
            self.ready.set()
        self._say(self, message)

    def signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)


class Supervisor:
    def __init__(self, config: Config, command: list[str], listening: Listening, read: Read | None = None) -> None:
        """`command` starts one worker: this program, as it was started itself. `read`: the configuration, once more."""
        self._command = command
        self._listening = listening
        self._config = config
        self._read = read
        self._count = config.server.workers
        self._census = Census[_Worker]()
        self._serving: dict[int, _Worker] = {}
        """By number: those that took their place, and were not told to leave it."""
        self._living: set[_Worker] = set()
        self._pauses: dict[int, float] = {}
        """Before the next attempt to fill a place."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending = Ending()
        self._stop = self._ending.stop
        self._rolling = False

    async def run(self, started: Callable[[str], None]) -> None:
        """Until told to stop. Raises `Failed` if not even the first worker can start."""
        on_signals(self._ending, self._hang_up)
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
            self._dismiss(before, replaced=True)
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
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        listener = self._listening.socket.fileno()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                env={**os.environ, VARIABLE: Post(number, listener, theirs.fileno()).spell()},
                pass_fds=(listener, theirs.fileno()),
                process_group=0,  # Ctrl-C is for us: it reaches them as the one word that we pass on
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = _Worker(number, process, self._hear)
        await asyncio.get_running_loop().create_unix_connection(lambda: worker.line, sock=ours)
        self._living.add(worker)
        tell(log, "info", "worker.started", **worker.facts)
        self._do(self._watch(worker))
        return worker

    async def _watch(self, worker: _Worker) -> None:
        """From its start to its end; then its place is filled anew, if it had one."""
        ended = asyncio.create_task(worker.process.wait())
        while not ended.done():
            silent = asyncio.get_running_loop().time() - worker.heard
            patience = self._config.server.stuck_worker if worker.ready.is_set() else _START
            if silent >= patience:
                await self._put_down(worker, silent)
                break
            await asyncio.wait({ended}, timeout=min(max(patience - silent, 0.05), _LOOK))
        await ended
        worker.line.close()
        self._census.bury(worker)
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
            self._do(self._reload())

    async def _reload(self) -> None:
        """Read the configuration; have each of them do so, or replace them if that is not enough."""
        try:
            plan = plan_reload(self._config, await self._read_again())
        except IsthmusError as error:
            effect = "the configuration that was in force stays so"
            tell(log, "error", "config.not_reloaded", effect=effect, reason=str(error))
            self._rolling = False
            return
        moved = sorted(ADDRESS.intersection(plan.waiting))
        if moved:
            words = "these keep their old value until the gateway is started again"
            tell(log, "warning", "config.needs_restart", settings=",".join(moved), effect=words)
        new = sorted(set(plan.waiting).difference(ADDRESS))
        if new:
            await self._roll(new)
        else:
            self._rolling = False
            for worker in self._serving.values():
                worker.signal(signal.SIGHUP)
        self._config = plan.config

    async def _read_again(self) -> Config:
        return self._config if self._read is None else (await asyncio.to_thread(self._read)).config

    async def _roll(self, why: list[str]) -> None:
        """One by one; one that does not come to serve leaves the others as they are."""
        tell(log, "info", "workers.rolling", workers=self._count, settings=",".join(why))
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

    def _dismiss(self, worker: _Worker, *, replaced: bool = False) -> None:
        server, word = self._config.server, REPLACED if replaced else None
        grace = server.grace if word is None else max(server.grace, server.reload_grace)
        worker.signal(signal.SIGTERM if word is None else word)
        asyncio.get_running_loop().call_later(grace + _AFTER, worker.signal, signal.SIGKILL)

    # ── what they say ──────────────────────────────────────────────────────────────────────────────

    def _hear(self, worker: _Worker, message: Message) -> None:
        match message:
            case Told(number, readings):
                self._census.note(worker, readings, number)
            case Collect(number, readings):
                self._census.note(worker, readings)
                self._do(self._count_all(worker, number))
            case _:
                pass

    async def _count_all(self, worker: _Worker, number: int) -> None:
        others = [each for each in self._living - {worker} if each.ready.is_set()]
        told = await self._census.count(others, lambda each, asked: each.line.say(Ask(asked)))
        worker.line.say(msgspec.structs.replace(told, number=number))

    async def _end(self) -> None:
        for worker in self._living:
            self._dismiss(worker)
        hurrying = asyncio.create_task(self._ending.hurry.wait())
        ending = asyncio.create_task(self._all_over())
        await asyncio.wait({hurrying, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            for worker in self._living:
                # The second one. Another than the first: of two that are the same a busy process may see but one.
                worker.signal(signal.SIGINT)
        await ending
        hurrying.cancel()

    async def _all_over(self) -> None:
        while self._tasks:
            await asyncio.wait(set(self._tasks))


async def supervise(
    config: Config, command: list[str], started: Callable[[str], None], read: Read | None = None
) -> None:
    """Serve with `server.workers` processes until told to stop."""
    listening = listen(config.server)
    try:
        await Supervisor(config, command, listening, read).run(started)
    finally:
        listening.close()
