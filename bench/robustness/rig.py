"""The gateway as a process of its own, started as a user starts it, and looked at from outside.

In: an upstream's address and a folder. Out: a running `isthmus serve` whose memory and CPU time come from
the kernel. The environment plays no part in its configuration.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

PATIENCE: Final = 60.0
"""Seconds to wait for a state before a check gives up and says so."""
MODEL: Final = "up/model"


class GatewayProcess:
    """One `isthmus serve`. The folder keeps its configuration, its log and its database over restarts."""

    def __init__(
        self,
        folder: Path,
        upstream: str,
        *,
        server: str = "",
        provider: str = "",
        store: str = "",
        background: str = "",
        trace: str = "",
        connections: int = 1000,
        keeping: str = "",
        core: int | None = None,
        source: Path | None = None,
    ) -> None:
        """`keeping`: more of the section `store`; `source`: the `src` of another tree, to compare with."""
        self.folder = folder
        self._environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder)}
        if sources := str(source or os.environ.get("PYTHONPATH", "")):
            self._environment["PYTHONPATH"] = sources
        self.database = folder / "isthmus.db"
        self._config = folder / "isthmus.toml"
        more = f"[background]\n{background}\n" if background else ""
        more += f"[trace]\n{trace}\n" if trace else ""
        self._config.write_text(
            f'[server]\nport = 0\n{server}\n[models]\ndemo = false\ndefault = "{MODEL}"\n'
            f'[providers.up]\nuses = "openai-compatible"\nbase_url = "{upstream}"\n'
            f"max_connections = {connections}\n{provider}\n"
            f'{more}[store]\nurl = "{store or f"sqlite:{self.database}"}"\n{keeping}\n[log]\nlevel = "warning"\n'
        )
        self._core = core
        self.log = folder / "gateway.log"
        self._process: subprocess.Popen[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = 0

    async def start(self) -> None:
        """Start it and wait until it says where it listens."""
        with _on_core(self._core):
            already = self._spawn()

        def address() -> str | None:
            text = self.log.read_bytes()[already:].decode()
            if self.process.poll() is not None:
                raise RuntimeError(f"the gateway ended with {self.process.returncode}:\n{text}")
            _, found, rest = text.partition("listening on ")
            return rest.split()[0] if found and "\n" in rest else None

        self.port = urlsplit(await until(address, "the gateway's start")).port or 0

    def _spawn(self) -> int:
        """How long the log was before."""
        self.port = 0
        with self.log.open("ab") as written:
            already = written.tell()
            self._process = subprocess.Popen(
                [str(Path(sys.executable).with_name("isthmus")), "serve", "--config", str(self._config)],
                stdout=subprocess.DEVNULL,
                stderr=written,
                cwd=self.folder,
                env=self._environment,
            )
        return already

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "not started"
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def listening(self) -> bool:
        """Whether it runs and has said where."""
        return self.running and self.port > 0

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait for its end; the exit code."""
        code: int = await until(self.process.poll, "the gateway's end")
        return code

    async def stop(self) -> int:
        if self.running:
            self.terminate()
        return await self.ended()

    async def kill(self) -> None:
        """`kill -9`: nothing of it gets a word in."""
        self.process.kill()
        await self.ended()

    def memory(self) -> int:
        """Resident bytes, as the kernel counts them."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")

    def cpu(self) -> float:
        """Seconds of CPU time, user and system, of all its threads. Linux's clock id of another process."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def files(self) -> int:
        """Open file descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def children(self) -> int:
        """Processes that it started, and those that they did."""
        return len(self._below(deep=True))

    def workers(self) -> list[int]:
        """Processes that it started itself, by their ids."""
        return sorted(self._below(deep=False))

    def _below(self, *, deep: bool) -> set[int]:
        parents: dict[int, int] = {}
        for each in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):  # it has ended meanwhile
                parents[int(each.parent.name)] = int(each.read_text().rpartition(")")[2].split()[1])
        found = {self.process.pid}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
            if not deep:
                break
        return found - {self.process.pid}

    def tracebacks(self) -> int:
        """How often the log shows a bug of ours."""
        return self.log.read_text().count("Traceback (most recent call last)")


@asynccontextmanager
async def running_gateway(folder: Path, upstream: str, **options: Any) -> AsyncIterator[GatewayProcess]:
    """A started gateway; killed at the end if the check has not ended it."""
    gateway = GatewayProcess(folder, upstream, **options)
    cores = os.sched_getaffinity(0)
    try:
        await gateway.start()
        yield gateway
    finally:
        os.sched_setaffinity(0, cores)
        if gateway.running:
            await gateway.kill()


@contextmanager
def _on_core(core: int | None) -> Iterator[None]:
    """What is started inside has this core, and we have the others from then on; with one core nothing changes."""
    cores = os.sched_getaffinity(0)
    if core is None or len(cores) < 2:
        yield
        return
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores - {core})


async def until(look: Callable[[], Any], what: str) -> Any:
    """Look again and again until there is something to see: states of another process have no event to wait for."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        seen = look()
        found = await seen if isinstance(seen, Awaitable) else seen
        if found is not None:
            return found
        await asyncio.sleep(0.005)
    raise TimeoutError(f"{what} did not happen within {PATIENCE:g} s")
