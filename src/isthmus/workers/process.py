"""One worker process, seen from here: start it, give it one job at a time, end it.

It inherits nothing: no open files, none of our environment but where Python finds its modules. When we die, its
input ends, and it with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from isthmus.workers.child import ASKED, DONE, FAILED, LENGTH, RETIRING, TOO_LARGE

_KEPT_VARIABLES: Final = ("PYTHONHOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Without which an interpreter may not start."""
_START: Final = 30.0
"""Seconds that a process has to start."""
_SAYING: Final = 1.0
"""Seconds that it has to say where it stands."""
_LONGEST_STACK: Final = 16_384
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+) in (\S+)')
"""As `faulthandler` writes it."""
_LAST_LINES: Final = (b"in _run_module_as_main\n", b"  ...\n")
"""Its last line: of `python -m`, or of a stack that is too deep."""


class Died(Exception):
    """The process ended in the middle of a job."""


class TooLarge(Exception):
    """A job needed more memory than a process may have."""


class Failed(Exception):
    """A job raised something: a bug of ours."""


class Worker:
    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._told = process.stderr
        self._input = process.stdin
        self._output = process.stdout
        self.retiring = False
        """Whether it ends by itself after the job that it did."""
        self.idle: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None and not self._output.at_eof()

    def cpu_seconds(self) -> float | None:
        """The processor time that it has taken so far; `None` where the system does not tell, or it is gone."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError, ValueError):
            return None

    async def call(self, kind: str, payload: bytes) -> bytes:
        """Have one job done; raises `Died`, `TooLarge` or `Failed`."""
        head = LENGTH.pack(len(kind) + 1 + len(payload)) + kind.encode() + b"\0"
        self._input.write(head + payload)  # one write: each is a call into the kernel
        try:
            await self._input.drain()
            answer = await self._read()
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Died from error
        self.retiring = bool(answer[0] & RETIRING)
        match answer[0] & ~RETIRING:
            case code if code == DONE:
                return answer[1:]
            case code if code == TOO_LARGE:
                raise TooLarge
            case code if code == FAILED:
                raise Failed(answer[1:].decode(errors="replace"))
        raise Died

    async def stack(self) -> str | None:
        """Where it stands, the innermost frame first; `None` where it cannot tell."""
        if ASKED is None or not self.alive:
            return None
        told = b""
        with suppress(ProcessLookupError, TimeoutError):
            self._process.send_signal(ASKED)
            async with asyncio.timeout(_SAYING):  # it comes line by line
                while len(told) < _LONGEST_STACK and not told.endswith(_LAST_LINES):
                    if not (piece := await self._told.read(_LONGEST_STACK)):
                        break
                    told += piece
        frames = _FRAME.findall(told.decode(errors="replace"))
        return " < ".join(f"{name} ({file}:{line})" for file, line, name in frames) or None

    async def started(self) -> None:
        try:
            async with asyncio.timeout(_START):
                await self._read()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError) as error:
            raise Died from error

    async def end(self, *, kill: bool) -> None:
        """Ask it to end, or end it; returns when it has."""
        if self.idle is not None:
            self.idle.cancel()
        self._input.close()
        if kill:
            self._kill()
        try:
            async with asyncio.timeout(1.0):
                await self._process.wait()
        except TimeoutError:
            self._kill()
            await self._process.wait()

    def _kill(self) -> None:
        try:
            self._process.kill()
        except ProcessLookupError:
            return

    async def _read(self) -> bytes:
        (size,) = LENGTH.unpack(await self._output.readexactly(LENGTH.size))
        return await self._output.readexactly(size)


async def start_worker(runners: Mapping[str, str], *, memory: int, deadline: float) -> Worker:
    """A process that is ready for its first job; raises `Died` or `OSError`."""
    options = json.dumps({"runners": dict(runners), "memory": memory, "deadline": deadline})
    command = [sys.executable, "-P", "-s", "-m", "isthmus.workers.child", options]
    worker = Worker(
        await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=_environment(),
            start_new_session=True,  # a Ctrl-C in our terminal is not for it
        )
    )
    try:
        await worker.started()
    except BaseException:
        await worker.end(kill=True)
        raise
    return worker


def _environment() -> dict[str, str]:
    found = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    # The very places that this process imports from, whichever way they came to be.
    return {**found, "PYTHONPATH": os.pathsep.join(os.path.abspath(place) for place in sys.path if place)}
