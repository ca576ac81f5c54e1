"""The process: uvicorn around the app, and an orderly end.

SIGTERM or SIGINT: new requests get 503, running ones may finish within the grace period, the rest end
with a terminal event; then the socket closes. A second signal ends at once.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Final

import uvicorn

from isthmus.addresses import is_loopback
from isthmus.config.schema import Config, Server
from isthmus.errors import ConfigError
from isthmus.gateway.gateway import Gateway
from isthmus.log import tell
from isthmus.server.accompany import Pulse
from isthmus.server.app import create_app
from isthmus.server.callers import Keys
from isthmus.server.options import ServerOptions
from isthmus.wiring import running_gateway

log = logging.getLogger("isthmus.server")

_UNSENT: Final = 64 * 1024
"""Bytes that may wait in the kernel for a client's turn; those under way to it are not counted."""


async def serve(
    config: Config,
    *,
    started: Callable[[str, Gateway], None] | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until told to stop: by a signal, or by `stop` where the caller has its own way (signals are left alone)."""
    check_open(config.server)
    # First of all: where another one listens already, nothing is begun that would have to be undone.
    listener = _listen(config.server.host, config.server.port)
    async with AsyncExitStack() as stack:
        stack.callback(listener.close)
        gateway = await stack.enter_async_context(running_gateway(config))
        server = _Server(_uvicorn_config(gateway, config))
        hurry = asyncio.Event()
        if stop is None:
            stop = asyncio.Event()
            _on_signals(stop, hurry)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        waiting = asyncio.create_task(stop.wait())
        await asyncio.wait([running, asyncio.create_task(server.ready.wait())], return_when=asyncio.FIRST_COMPLETED)
        if started is not None and server.started:
            started(_address(listener), gateway)
        recovering = asyncio.create_task(gateway.orphans.keep_looking(), name="recover what others left")
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            tell(log, "info", "server.draining", running=len(gateway.runs), grace=config.server.grace)
            await _drain(gateway, config.server.grace, hurry)
            server.force_exit = hurry.is_set()
            server.should_exit = True
            await running
        waiting.cancel()
        recovering.cancel()
        with suppress(asyncio.CancelledError):
            await waiting


def check_open(server: Server) -> None:
    """Whoever reaches a gateway without keys spends the operator's money: that must be wanted."""
    if is_loopback(server.host) or server.api_keys or server.admin_key or server.open:
        return
    raise ConfigError(
        f"`{server.host}` can be reached by other machines, and no key is asked for: everybody there could spend your "
        'provider\'s money. Set `server.api_keys = ["${ISTHMUS_KEY}"]`, or `server.open = true` if that is meant',
        param="server.api_keys",
    )


async def _drain(gateway: Gateway, grace: float, hurry: asyncio.Event) -> None:
    """Wait for what is running, unless told to hurry: then it ends now, still with its terminal events."""
    finishing = asyncio.create_task(gateway.drain(grace))
    hurrying = asyncio.create_task(hurry.wait())
    await asyncio.wait([finishing, hurrying], return_when=asyncio.FIRST_COMPLETED)
    hurrying.cancel()
    if not finishing.done():
        finishing.cancel()
        with suppress(asyncio.CancelledError):
            await finishing
        await gateway.drain(0, last_words=0.25)


class _Server(uvicorn.Server):
    """Signals are ours: uvicorn's own handler would cut what is running."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.ready.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _uvicorn_config(gateway: Gateway, config: Config) -> uvicorn.Config:
    options = ServerOptions(
        max_body=config.server.max_body,
        max_concurrent=config.server.max_concurrent,
        pulse=Pulse(config.server.heartbeat, config.server.ping),
        local_only=is_loopback(config.server.host),
        allow_origins=frozenset(config.server.allow_origins),
        keys=Keys(config.server.api_keys, config.server.admin_key),
    )
    return uvicorn.Config(
        create_app(gateway, options),
        http="httptools",
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # it warns of every WebSocket upgrade, which we answer ourselves
        access_log=False,
        proxy_headers=False,  # nothing here believes what a client says about its address
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,  # everything has ended by now; a client may not have read it
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):
        # Accepted sockets inherit it. Without it the kernel takes megabytes for a client that does not read, and
        # the upstream is slowed down only when those are full.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another with `--port`", param="server.port"
        ) from error
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _on_signals(stop: asyncio.Event, hurry: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()

    def asked() -> None:
        if stop.is_set():
            hurry.set()
        stop.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, asked)
