"""The connection that listens: what others commit, whether the server is there, and the word that we have committed.

One thread, for as long as the store is open. Whoever commits wakes it, and it tells all others with one `NOTIFY`,
however many commits that was: a `NOTIFY` inside each transaction would make all of them commit one after the other,
because the server takes a lock of the whole database for it.

A word can be lost: with the process before it is sent, with the connection before it is heard. So every `poll_seconds`
the thread looks whether anything was committed at all: the server's list of transactions under way
(`pg_current_snapshot`) changes with every one. And what happens while nobody can listen counts as a change.
"""

from __future__ import annotations

import asyncio
import logging
import os
import selectors
import threading
import time
from contextlib import closing, suppress
from typing import Final

import psycopg

from isthmus.errors import IsthmusError
from isthmus.log import tell
from isthmus.store.postgres.connect import Connection
from isthmus.store.postgres.medium import Medium

_PACE: Final = 0.02
"""Seconds between two words, and between two wake-ups of those who wait here: all commits in between are one."""

log = logging.getLogger("isthmus.store")


class Changes:
    def __init__(self, medium: Medium, *, poll_seconds: float = 1.0, retry_seconds: float = 0.25) -> None:
        self._medium = medium
        self._poll_seconds = poll_seconds
        self._retry_seconds = retry_seconds
        self._channel = psycopg.sql.Identifier(f"isthmus:{medium.options.schema}")
        self._version = 0
        self._waiting: dict[asyncio.Future[None], asyncio.AbstractEventLoop] = {}
        self._noting = threading.Lock()
        self._unsent = self._unseen = False
        """Something was committed here that the others were not told of, and that nobody was woken for here."""
        self._closing = False
        self._seen = ""
        self._wakes, self._woken = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(self._woken, False)
        medium.wake = self._wake
        self._thread = threading.Thread(target=self._work, name="isthmus-store-listener", daemon=True)
        self._thread.start()

    async def watch(self, seconds: float, since: int | None) -> int:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        seen = self._mark() if since is None else since
        while self._version == seen and (left := until - loop.time()) > 0:
            told = loop.create_future()
            with self._noting:
                if self._version != seen:
                    break
                self._waiting[told] = loop
            try:
                await asyncio.wait((told,), timeout=left)
            finally:
                with self._noting:
                    self._waiting.pop(told, None)
        return self._version

    def changed(self) -> None:
        """Something was committed here. From any thread."""
        self._unsent = self._unseen = True
        self._wake()

    def _mark(self) -> int:
        """Where it stands now, with what was committed here a moment ago."""
        if self._unseen:
            self._tell()
        return self._version

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        self._wake()
        await asyncio.to_thread(self._thread.join)
        os.close(self._wakes)
        os.close(self._woken)

    # ── the thread ─────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while not self._closing:
            try:
                connection = self._medium.connect()
            except IsthmusError:
                self._sleep(self._retry_seconds)
                continue
            try:
                with closing(connection), suppress(psycopg.Error):
                    self._listen(connection)
            except Exception as error:  # whatever it is: without this thread nobody would know that the server is back
                tell(log, "error", "store.listen.failed", store=self._medium.name, trace=error)
                self._sleep(self._retry_seconds)

    def _listen(self, connection: Connection) -> None:
        connection.execute(psycopg.sql.SQL("LISTEN {}").format(self._channel))
        self._medium.recovered()
        self._look(connection)
        self._tell()  # nobody knows what was missed until now
        looked = time.monotonic()
        while not self._closing:
            left = max(0.0, looked + self._poll_seconds - time.monotonic())
            ready = _wait(min(left, self._retry_seconds) if self._medium.troubled else left, connection, self._wakes)
            self._drain()
            heard = ready and self._hear(connection)
            if self._unsent:
                self._unsent = False
                connection.execute(psycopg.sql.SQL("NOTIFY {}").format(self._channel))
                heard = self._hear(connection) or heard
            if time.monotonic() - looked >= self._poll_seconds:
                looked = time.monotonic()
                heard = self._look(connection) or heard
            if self._medium.troubled:
                self._try_again()
            if heard or self._unseen:
                self._tell()
                self._sleep(_PACE, awake=True)

    def _try_again(self) -> None:
        """This connection stands, and somebody else got none: there may be too many of them."""
        with suppress(IsthmusError):
            self._medium.connect().close()
            self._medium.recovered()

    def _hear(self, connection: Connection) -> bool:
        """Whether another one has said something: our own words come back, too."""
        own = connection.info.backend_pid
        return any(word.pid != own for word in list(connection.notifies(timeout=0)))

    def _look(self, connection: Connection) -> bool:
        """Whether anything was begun or committed since the last look."""
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
        assert row is not None
        seen, self._seen = self._seen, row[0]
        return seen != self._seen

    def _tell(self) -> None:
        with self._noting:
            self._version += 1
            self._unseen = False
            waiting, self._waiting = self._waiting, {}
        for told, loop in waiting.items():
            with suppress(RuntimeError):  # the loop is closed, nobody is waiting any more
                loop.call_soon_threadsafe(_settle, told)

    def _wake(self) -> None:
        with suppress(BlockingIOError, OSError):
            os.write(self._woken, b"!")

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._wakes, 4096):
                pass

    def _sleep(self, seconds: float, *, awake: bool = False) -> None:
        """Unless the store is closed meanwhile."""
        until = time.monotonic() + seconds
        while not self._closing and (left := until - time.monotonic()) > 0:
            if awake:
                time.sleep(left)
            else:
                _wait(left, None, self._wakes)
                self._drain()


def _wait(seconds: float, connection: Connection | None, wakes: int) -> bool:
    """Until something comes; whether it comes from the server. Not by `select`, which knows only 1,024 files."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(wakes, selectors.EVENT_READ)
        if connection is not None:
            waiting.register(connection.fileno(), selectors.EVENT_READ)
        ready = {key.fd for key, _ in waiting.select(seconds)}
    return connection is not None and connection.fileno() in ready


def _settle(told: asyncio.Future[None]) -> None:
    if not told.done():
        told.set_result(None)
