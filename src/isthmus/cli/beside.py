"""A program beside a gateway, for one go: a free port, nothing written to anybody's configuration.

The gateway lives in this process for as long as the program does. The terminal belongs to the program: signals that the
terminal sends reach it by themselves, those sent to us are handed on, and its exit code is ours.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from isthmus.config import load_config
from isthmus.config.schema import Config
from isthmus.log import TextFormatter
from isthmus.observe.outlet import Outlet

PRIVATE_SERVER: Final = {
    "server.host": "127.0.0.1",
    "server.port": 0,
    "server.unix_socket": "",
    "server.tls_cert": "",
    "server.tls_key": "",
    "server.path_prefix": "",
}
"""A gateway for one go: only its own program speaks to it, however the one for everybody is reached."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How a program is started."""

    command: Sequence[str]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    """On top of our own; `None` leaves a variable of ours out."""


def private_settings(config: Path | None, store: str, overrides: Mapping[str, Any] | None = None) -> Config:
    """The user's configuration for a gateway of one go, whose store is a file of its own beside the gateway's: a
    running one is not disturbed, and its key outlives the run."""
    from isthmus.wiring_notice import load_noticed

    url = load_config(config).config.store.url
    prefix, file = "sqlite:", url.removeprefix("sqlite:")
    own = url if file == url or ":memory:" in file else f"{prefix}{Path(file).with_name(store)}"
    return load_noticed(config, overrides={**PRIVATE_SERVER, "store.url": own, **(overrides or {})}).config


def log_to(file: Path | None) -> None:
    """What the gateway says goes into a file, or nowhere: the terminal is not ours."""
    root = logging.getLogger("isthmus")
    handler = Outlet(file.open("a")) if file is not None else logging.NullHandler()
    handler.setFormatter(TextFormatter())
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    root.propagate = False


async def run_beside(config: Config, prepare: Callable[[str], AbstractContextManager[Launch]]) -> int:
    """Start the gateway, then the program that `prepare` makes of its address; its exit code when both have ended."""
    from isthmus.server.serve import serve

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
        with prepare(url) as launch:
            return await run_program(launch)
    finally:
        stop.set()
        await gateway


async def run_program(launch: Launch) -> int:
    """Wait for the program; its exit code, as a shell would tell it."""
    process = await asyncio.create_subprocess_exec(*launch.command, env=_environment(launch.environment))
    # Ctrl-C reaches the whole terminal group: the program decides.
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


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """A proxy that the user has set must not stand between the program and this machine."""
    environment = dict(os.environ)
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = ",".join(filter(None, [environment.get(name), "127.0.0.1,localhost"]))
    for name, value in changes.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return environment
