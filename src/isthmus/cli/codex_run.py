"""Gateway and Codex together for one go: a free port, `-c` overrides, nothing written to the user's configuration.

The gateway lives in this process for as long as Codex does. The terminal belongs to Codex: signals that the terminal
sends reach it by themselves, those sent to us are handed on, and its exit code is ours.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from isthmus.cli.codex_config import overrides
from isthmus.cli.codex_keys import Settings
from isthmus.config.schema import Config
from isthmus.protocol.json import JsonObject
from isthmus.server.serve import serve


async def run_codex(binary: Path, config: Config, model: str, catalogue: JsonObject, arguments: Sequence[str]) -> int:
    """Start both, wait for Codex, stop the gateway; Codex's exit code."""
    stop = asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    gateway = asyncio.create_task(serve(config, started=lambda where, _: address.set_result(where), stop=stop))
    gateway.add_done_callback(lambda ended: address.done() or address.cancel())
    try:
        url = await address
    except asyncio.CancelledError:
        await gateway  # it did not start: this says why
        raise
    try:
        with tempfile.TemporaryDirectory(prefix="isthmus-codex-") as folder:
            file = Path(folder) / "models.json"
            file.write_bytes(msgspec.json.encode(catalogue))
            settings = Settings(f"{url}/v1", model, str(file))
            return await _carry_out([str(binary), *overrides(settings), *arguments])
    finally:
        stop.set()
        await gateway


async def _carry_out(command: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(*command, env=_environment())
    # Ctrl-C reaches the whole terminal group: Codex decides.
    with _on_signal(signal.SIGINT, lambda: None), _on_signal(signal.SIGTERM, process.terminate):
        try:
            code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return code if code >= 0 else 128 - code


@contextmanager
def _on_signal(each: signal.Signals, do: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(each, do)
    except NotImplementedError:  # Windows
        before = signal.signal(each, lambda *_: loop.call_soon_threadsafe(do))
        try:
            yield
        finally:
            signal.signal(each, before)
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(each)


def _environment() -> dict[str, str]:
    """A proxy that the user has set must not stand between Codex and this machine."""
    environment = dict(os.environ)
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = ",".join(filter(None, [environment.get(name), "127.0.0.1,localhost"]))
    return environment
