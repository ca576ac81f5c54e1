"""The process: uvicorn around the app, and an orderly end.

SIGTERM or SIGINT: new requests get 503, running ones may finish within the grace period, the rest end
with a terminal event; then the socket closes. A second signal ends at once. SIGHUP: see `reload`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import uvicorn

from isthmus.access.book import Book
from isthmus.addresses import is_loopback
from isthmus.config.schema import Config, Server
from isthmus.errors import ConfigError
from isthmus.gateway.caller import Caller
from isthmus.gateway.gateway import Gateway
from isthmus.log import tell
from isthmus.observe.memory import tune_allocator
from isthmus.observe.metrics.meters import Labels, Meters
from isthmus.observe.vitals import Vitals
from isthmus.server.accept import Acceptor
from isthmus.server.app import App, create_app
from isthmus.server.callers import Keys, caller_with
from isthmus.server.connection import Connection
from isthmus.server.listen import listen, load_certificate, share, tls_context
from isthmus.server.open import check_open, is_local
from isthmus.server.options import ServerOptions
from isthmus.server.paths import clean_prefix
from isthmus.server.post import Post
from isthmus.server.reload import Board, Read, Reloading
from isthmus.server.signals import Ending, on_replaced, on_signals
from isthmus.server.switches import obeying
from isthmus.wiring import House, missing_keys, open_house

if TYPE_CHECKING:
    from isthmus.config.load import Reading
    from isthmus.server.reporting import Reporting
    from isthmus.wiring_notice import Noticing

log = logging.getLogger("isthmus.server")

_GLANCE: Final = 0.05
"""Seconds between two looks at who is still connected."""
_FILES: Final = 65_536
"""Open files that we ask for where the system sets no limit of its own."""


async def serve(
    config: Config,
    *,
    started: Callable[[str, Gateway], None] | None = None,
    waiting: Callable[[Gateway], None] | None = None,
    stop: asyncio.Event | None = None,
    post: Post | None = None,
    reading: Reading | None = None,
    read: Read | None = None,
    noticing: Noticing | None = None,
) -> None:
    """Serve until told to stop: by a signal, or by `stop` where the caller has its own way (signals are left alone).

    `waiting` is called while the end waits for running responses, at once and then every few seconds. `post`: it is one
    of several workers; the others let in who comes, so that it serves whom it has, and nobody is sent away. `reading`:
    where the configuration comes from, for the page. `read` has it once more, for SIGHUP, and when `noticing` has found
    another server on this machine.
    """
    tls = tls_context(config.server)
    # First of all: where another one listens already, nothing is begun that would have to be undone.
    listening = listen(config.server) if post is None else share(config.server, post.listener)
    async with AsyncExitStack() as stack:
        stack.callback(listening.close)
        raise_file_limit()
        tune_allocator()
        meters = Meters() if config.metrics.enabled else None
        vitals = Vitals(
            slow=config.limits.slow_loop,
            stuck=config.limits.stuck_loop,
            measured=meters.histogram("isthmus_loop_lag_seconds").note if meters is not None else lambda lag: None,
        )
        vitals.start()
        stack.callback(vitals.stop)
        house = await stack.enter_async_context(open_house(meters, None if noticing is None else noticing.miss))
        gateway = await house.open(config)
        book = open_book(gateway, config.server)
        await book.look()
        check_open(config.server, kept=book.needed)
        book.start()
        stack.push_async_callback(book.aclose)
        ending = Ending() if stop is None else Ending(stop=stop, called=stop)
        reporting = None if post is None else _reporting(ending, meters)
        options = ServerOptions(vitals=vitals, meters=meters, reporting=reporting)
        board = Board(_make_app(gateway, config, options, reading, book))
        stack.push_async_callback(lambda: board.app.aclose())
        if meters is not None:
            meters.watch(lambda: _look_at(house))
        server = _Server(_uvicorn_config(board, config), tls, config.server.head_timeout)
        reloading = Reloading(
            config,
            house,
            board,
            read=read,
            check=lambda config: check_open(config.server, kept=book.needed),
            adopt=partial(_adopt, server, options, book),
        )
        stack.push_async_callback(reloading.aclose)
        if stop is None:
            on_signals(ending, partial(_hang_up, config.server, tls, reloading))
        running = asyncio.create_task(server.serve(sockets=[listening.socket]))
        stopping = asyncio.create_task(ending.stop.wait())
        await asyncio.wait([running, asyncio.create_task(server.ready.wait())], return_when=asyncio.FIRST_COMPLETED)
        if noticing is not None:
            await _look_around(noticing, book, reloading, stack)
        if started is not None and server.started:
            started(listening.address, house.gateway or gateway)
        if post is not None and reporting is not None:
            on_replaced(ending)
            await reporting.open(post)
            reporting.start()
            stack.callback(reporting.end)
        recovering = asyncio.create_task(gateway.orphans.keep_looking(), name="recover what others left")
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            from isthmus.server.ending import end

            leave = server.leave if post is not None else None
            await end(gateway, reloading.config.server, board.app.guests.sockets, ending, leave=leave, waiting=waiting)
            server.end(hurry=ending.hurry.is_set())
            await running
        stopping.cancel()
        recovering.cancel()
        with suppress(asyncio.CancelledError):
            await stopping


async def _look_around(noticing: Noticing, book: Book[Caller], reloading: Reloading, stack: AsyncExitStack) -> None:
    """For servers on this machine: once, before anybody is told what is served, and then now and again."""
    noticing.shared = lambda: book.needed
    if await noticing.look():
        await reloading.at_once()
    looking = asyncio.create_task(noticing.keep_looking(reloading.ask), name="look around, now and again")
    stack.callback(looking.cancel)


def _reporting(ending: Ending, meters: Meters | None) -> Reporting:
    from isthmus.server.reporting import Reporting

    return Reporting(ending, meters.read if meters is not None else list)


def _look_at(house: House) -> Iterator[tuple[str, Labels, float]]:
    from isthmus.server.metrics import look_at

    return look_at(house.gateway) if house.gateway is not None else iter(())


def _adopt(
    server: _Server,
    options: ServerOptions,
    book: Book[Caller],
    gateway: Gateway,
    config: Config,
    reading: Reading,
    before: App,
) -> App:
    """Another configuration for all that listens."""
    server.connections.adopt(config.server)
    return _make_app(gateway, config, options, reading, book, before)


def _hang_up(server: Server, tls: ssl.SSLContext | None, reloading: Reloading) -> None:
    if tls is None:
        tell(log, "info", "server.hangup", effect="the configuration is read again")
    else:
        try:
            load_certificate(tls, server)
        except ConfigError as error:
            tell(log, "error", "server.hangup", effect="the old certificate stays", reason=error.message)
        else:
            tell(log, "info", "server.hangup", effect="the certificate was read again, the configuration follows")
    reloading.ask()


def raise_file_limit() -> None:
    """Every stream takes two files, its client's and its provider's: use as many as we are allowed."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, _FILES)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def open_book(gateway: Gateway, server: Server) -> Book[Caller]:
    """The keys of the gateway's store, and what was switched at others on it."""
    obey = obeying(gateway.store, gateway.tracing)
    return Book(gateway.store, caller_with, stale=server.stale_keys, alone=is_local(server), obey=obey)


class _Server(uvicorn.Server):
    """Signals are ours: uvicorn's own handler would cut what is running. So is the door: see `accept`."""

    def __init__(self, config: uvicorn.Config, tls: ssl.SSLContext | None, handshake: float) -> None:
        super().__init__(config)
        self.connections: type[Connection] = config.http  # type: ignore[assignment]
        self._tls = tls
        self._handshake = handshake
        self._doors: list[Acceptor] = []
        self.ready = asyncio.Event()
        self._over = asyncio.Event()

    def end(self, *, hurry: bool) -> None:
        self.force_exit = hurry
        self.should_exit = True
        self._over.set()

    async def main_loop(self) -> None:
        """Sleeps. uvicorn's wakes ten times a second to look whether it is over, and at a date that is not sent."""
        await self.on_tick(0)
        await self._over.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.config.ssl = self._tls  # read by us, so that a file that cannot be read is told in words
        doors = [Acceptor(each, self._protocol, tls=self._tls, handshake=self._handshake) for each in sockets or ()]
        try:
            for door in doors:
                door.open()
        except NotImplementedError:  # Windows
            await super().startup(sockets=sockets)
        else:
            self._doors = doors
            await super().startup(sockets=[])
        self.ready.set()

    async def leave(self, grace: float, hurry: asyncio.Event) -> float:
        """Let nobody in any more, and go on with those who are: each is let go after what it asked for. Gives the
        seconds that are left."""
        for door in self._doors:
            door.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        while self.server_state.connections and loop.time() < until and not hurry.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(hurry.wait(), _GLANCE)
        return max(until - loop.time(), 0.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for door in self._doors:
            door.close()
        for each in sockets or ():
            each.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)  # who only waited for another question is gone now
        if self.server_state.connections or self.server_state.tasks or self.servers:
            await super().shutdown()

    def _protocol(self) -> asyncio.Protocol:
        return self.connections(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _make_app(
    gateway: Gateway,
    config: Config,
    lasting: ServerOptions,
    reading: Reading | None = None,
    book: Book[Caller] | None = None,
    before: App | None = None,
) -> App:
    """`lasting`: what outlives a configuration; the rest is made of this one."""
    server = config.server
    options = replace(
        lasting,
        server=server,
        websocket=config.websocket,
        local_only=is_loopback(server.host) and not server.unix_socket,  # no page can reach a Unix socket
        allow_origins=frozenset(server.allow_origins),
        keys=Keys(
            server.api_keys,
            server.admin_key,
            config.metrics.key,
            book,
            {name: tuple(team.models) for name, team in config.teams.items() if team.models},
        ),
        prefix=clean_prefix(server.path_prefix),
        missing_keys=missing_keys(config, gateway.directory.served),
        limits=config.limits,
        audit_entries=config.store.audit_entries,
        reading=reading,
    )
    return create_app(gateway, options, before)


def _uvicorn_config(app: Board, config: Config) -> uvicorn.Config:
    server, websocket = config.server, config.websocket
    return uvicorn.Config(
        app,
        interface="asgi3",  # it would look for a coroutine function
        http=Connection.within(server),
        ws="none",  # see `Connection.handle_websocket_upgrade`
        ws_max_size=server.max_body,
        ws_ping_interval=websocket.ping or None,
        ws_ping_timeout=websocket.pong,
        ws_per_message_deflate=False,  # 60 kB for each socket, and time for each event, to save a little on the way
        loop="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # it warns of every WebSocket upgrade, which we answer ourselves
        access_log=False,
        proxy_headers=bool(server.trusted_proxies),  # else nothing here believes what a client says about its address
        forwarded_allow_ips=server.trusted_proxies,
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=2,  # everything has ended by now; a client may not have read it
    )
