"""A gateway of anybody's as a tree of processes: on a core of its own, and looked at from outside.

CPU time is user and system time of the whole tree as the kernel counts it, of children that have ended too; memory is
what is resident, of the whole tree.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_TICK: Final = os.sysconf("SC_CLK_TCK")
_LIBC: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG: Final = 1
PATIENCE: Final = 90.0
"""Seconds within which a gateway has to listen."""


class Tree:
    """A process and whatever it starts."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], core: int | None
    ) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.began = time.monotonic()

        def settle() -> None:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # whoever ends the run, however, ends this
            if core is not None:
                os.sched_setaffinity(0, {core})

        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=folder,
                env=dict(environment),
                preexec_fn=settle,
                start_new_session=True,
            )
        self.pid = self._process.pid

    async def listening(self, port: int) -> float:
        """Seconds from the start until it takes connections."""
        while time.monotonic() - self.began < PATIENCE:
            if self._process.poll() is not None:
                raise RuntimeError(f"ended with {self._process.returncode}:\n{self.words()}")
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return time.monotonic() - self.began
            await asyncio.sleep(0.002)
        raise RuntimeError(f"does not listen after {PATIENCE:g} s:\n{self.words()}")

    def words(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]

    def pids(self) -> list[int]:
        parents: dict[int, int] = {}
        for each in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                parents[int(each.parent.name)] = int(each.read_text().rpartition(")")[2].split()[1])
        found = {self.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def cpu(self) -> float:
        """Seconds."""
        seconds = 0.0
        for pid in self.pids():
            with suppress(OSError):
                seconds += time.clock_gettime((~pid << 3) | 2)  # Linux's id for the clock of another process
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                seconds += (int(fields[13]) + int(fields[14])) / _TICK  # children that it has waited for
        return seconds

    def memory(self) -> int:
        """Resident bytes."""
        pages = 0
        for pid in self.pids():
            with suppress(OSError):
                pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def ask_to_end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGTERM)

    def end(self) -> None:
        self.ask_to_end()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
