"""SIGHUP: the configuration is read again, and another gateway takes the place of the one that serves.

    read ─▶ plan_reload ─▶ a new gateway, and a new app in front of it ─▶ the board sends them whatever comes next
                            the old ones go on with what they have begun; then they are closed

The store, the runs, the listening socket and every connection stay. A configuration that cannot be used changes
nothing, and the log says what is wrong with it. What only a new process can take up is named there, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from starlette.types import Receive, Scope, Send

from isthmus.config.reload import Reload, plan_reload
from isthmus.config.schema import Config
from isthmus.errors import IsthmusError
from isthmus.gateway.gateway import Gateway
from isthmus.log import tell
from isthmus.server.app import App
from isthmus.wiring import House

if TYPE_CHECKING:
    from isthmus.config.load import Reading

log = logging.getLogger("isthmus.server")

MOST_OLD: Final = 16
"""Configurations that requests still run with: for one more, the first of them has to be over."""
Read: TypeAlias = "Callable[[], Reading]"
"""Reads the configuration as the first one was read. Raises `ConfigError`."""


class Board:
    """One address for whichever app serves: connections outlive a configuration, what comes next goes to the newest."""

    def __init__(self, app: App) -> None:
        self.app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self.app(scope, receive, send)


class Reloading:
    def __init__(
        self,
        config: Config,
        house: House,
        board: Board,
        *,
        read: Read | None,
        check: Callable[[Config], None],
        adopt: Callable[[Gateway, Config, Reading, App], App],
    ) -> None:
        """`check` raises `ConfigError` where a configuration is sound, and must not be served all the same; `adopt`
        makes the app that takes the place of another, and tells all that listens. Without `read` nothing is ever read
        again."""
        self.config = config
        """The one that is in force."""
        self._house = house
        self._board = board
        self._read = read
        self._check = check
        self._adopt = adopt
        self._asked = False
        self._working: asyncio.Task[None] | None = None
        self._leaving: set[asyncio.Task[None]] = set()

    def ask(self) -> None:
        """At once, or after the one that is under way: several that come meanwhile lead to one."""
        self._asked = self._read is not None
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work(), name="read the configuration again")

    async def at_once(self) -> None:
        """Ask, and wait until it is done."""
        self.ask()
        if self._working is not None:
            await asyncio.wait([self._working])

    async def aclose(self) -> None:
        pending = [task for task in (self._working, *self._leaving) if task is not None]
        for task in pending:
            task.cancel()
        if pending:
            await asyncio.wait(pending)

    async def _work(self) -> None:
        while self._asked:
            self._asked = False
            while len(self._leaving) >= MOST_OLD:
                words = "put off until the requests of an earlier configuration are over"
                tell(log, "warning", "config.reload_waits", configurations=len(self._leaving), effect=words)
                await asyncio.wait(self._leaving, return_when=asyncio.FIRST_COMPLETED)
            try:
                await self._reload()
            except Exception as error:  # whatever it is: those who are served must not notice
                known = isinstance(error, IsthmusError)
                effect = "the configuration that was in force stays so"
                trace = None if known else error
                tell(log, "error", "config.not_reloaded", effect=effect, reason=str(error), trace=trace)

    async def _reload(self) -> None:
        assert self._read is not None
        reading = await asyncio.to_thread(self._read)
        plan = plan_reload(self.config, reading.config)
        self._check(plan.config)
        old, old_app = self._house.gateway, self._board.app
        assert old is not None
        gateway = await self._house.open(plan.config)
        self._board.app = self._adopt(gateway, plan.config, reading, old_app)
        self.config = plan.config
        self._tell(plan, gateway)
        leaving = asyncio.create_task(self._leave(old, old_app), name="close what an old configuration opened")
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def _leave(self, old: Gateway, app: App) -> None:
        await old.users.leave(old.runs, self.config.server.reload_grace)
        await app.aclose()
        await self._house.close(old)

    def _tell(self, plan: Reload, gateway: Gateway) -> None:
        tell(log, "info", "config.reloaded", providers=",".join(gateway.directory.served))
        if plan.waiting:
            words = "these keep their old value until the gateway is started again"
            tell(log, "warning", "config.needs_restart", settings=",".join(plan.waiting), effect=words)
