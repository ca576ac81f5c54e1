"""The real server for tests: in a thread with a loop of its own, or as a process. Both on a port of their own choice.

    with running_gateway_server(toml) as gateway: ...       # quick to start; its insides can be looked at
    with running_gateway_process(toml, folder) as gateway: ...   # signals, kill -9, memory

The configuration is the text of an `isthmus.toml`; the environment plays no part in it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isthmus.conduct.run import Run
from isthmus.config import load_config
from isthmus.gateway.gateway import Gateway
from isthmus.server.serve import serve
from own_time import OwnTimeLoop, clock, run_in_own_time, turns

PATIENCE = 60.0
"""Seconds to wait for a start or an end before the test fails."""


class GatewayThread:
    """A server in this process. `gateway` belongs to its loop: look, do not await."""

    def __init__(self, config_toml: str) -> None:
        self._toml = config_toml
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._trouble: BaseException | None = None
        self._loop: OwnTimeLoop
        self._stop: asyncio.Event
        self.url: str
        self.gateway: Gateway

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(PATIENCE):
            raise TimeoutError("the gateway did not start")
        self._raise()

    def stop(self) -> None:
        """Drain and end, as SIGTERM does."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(PATIENCE)
        if self._thread.is_alive():
            raise TimeoutError("the gateway did not stop")
        self._raise()

    def skip(self, seconds: float) -> None:
        """Put its clock forward, and come back when what was due has been begun."""

        async def skip() -> None:
            self._loop.skip(seconds)
            await turns()

        self.do(skip())

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """No timer of its fires inside: what it does there, it does because of an event."""

        async def stop() -> None:
            self._loop.stop_clock()

        async def go_on() -> None:
            self._loop.start_clock()

        self.do(stop())
        try:
            yield
        finally:
            self.do(go_on())

    def wait_until_stuck(self, response_id: str) -> Run:
        """The run, when nothing of it has moved for many turns of the loop: every buffer to its reader is full."""
        run = self.gateway.runs.get("local", response_id)
        assert run is not None

        async def look() -> None:
            held = 0
            while held < 2000:
                held = held + 1 if not run._waits else 0  # it waits for its reader, not for the upstream
                await turns(1)

        self.do(look())
        return run

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry this out on its loop."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _raise(self) -> None:
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    def _run(self) -> None:
        try:
            run_in_own_time(self._live())
        except BaseException as error:
            self._trouble = error
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop = clock()
        self._stop = asyncio.Event()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "isthmus.toml"
            path.write_text(self._toml)
            reading = load_config(path, environ={})
        await serve(reading.config, started=self._started, stop=self._stop, reading=reading)

    def _started(self, url: str, gateway: Gateway) -> None:
        self.url, self.gateway = url, gateway
        self._ready.set()


@contextmanager
def running_gateway_server(config_toml: str) -> Iterator[GatewayThread]:
    """The server in a thread; it is drained at the end."""
    server = GatewayThread(config_toml)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class GatewayProcess:
    """`isthmus serve` as a process."""

    def __init__(self, process: subprocess.Popen[str], url: str, log: Path) -> None:
        self.process = process
        self.url = url
        self.log = log

    def stop(self) -> int:
        """Ask it to end (SIGTERM) and wait for it; gives the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.wait(PATIENCE)


@contextmanager
def running_gateway_process(
    config_toml: str, folder: Path, *, log_level: str = "info", environ: Mapping[str, str] | None = None
) -> Iterator[GatewayProcess]:
    """`isthmus serve` with this configuration, run in `folder`; ended with SIGTERM if it still runs."""
    config = folder / "isthmus.toml"
    config.write_text(config_toml)
    log = folder / "gateway.log"
    command = "from isthmus.cli.main import main; main()"
    arguments = ["serve", "--config", str(config), "--port", "0", "--log-level", log_level]
    with log.open("a") as written:
        already = written.tell()
        process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=written,
            cwd=folder,
            text=True,
            env={"HOME": str(folder), "PYTHONUNBUFFERED": "1", **_kept("PATH", "PYTHONPATH"), **(environ or {})},
        )
    try:
        gateway = GatewayProcess(process, _address(process, log, already), log)
        yield gateway
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(PATIENCE)


def _kept(*names: str) -> dict[str, str]:
    """What the process needs of our own environment: the sources that are tested are those that were named."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _address(process: subprocess.Popen[str], log: Path, already: int) -> str:
    """Where it listens, by its own words. A file has no event to wait for: it is looked at often."""
    waiting = threading.Event()
    for _ in range(int(PATIENCE / 0.01)):
        text = log.read_text()[already:]
        _, found, rest = text.partition("listening on ")
        if found and "\n" in rest:
            return rest.split()[0]
        if process.poll() is not None:
            raise RuntimeError(f"the gateway ended with {process.returncode}:\n{text}")
        waiting.wait(0.01)
    raise TimeoutError(f"the gateway did not start:\n{log.read_text()[already:]}")
