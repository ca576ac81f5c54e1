"""The end of a process in good order: what runs may finish, what takes too long is ended, and everybody is told.

One that another process has replaced takes as much time as after a reload: nobody waits for it. If the end is asked
for after all, the ordinary grace period begins then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from isthmus.config.schema import Server
from isthmus.gateway.gateway import Gateway
from isthmus.log import tell
from isthmus.server.signals import Ending

if TYPE_CHECKING:  # loaded when the first client asks for one
    from isthmus.server.sockets import Sockets

log = logging.getLogger("isthmus.server")

_TOLD_EVERY: Final = 5.0
"""Seconds after which it is told again what the end waits for."""
_GOODBYE: Final = 2.0
"""Seconds that clients of WebSockets have to say goodbye when nothing runs any more."""

Leave = Callable[[float, asyncio.Event], Awaitable[float]]
"""Lets nobody in any more, and waits for those who are; gives the seconds that are left."""


async def end(
    gateway: Gateway,
    settings: Server,
    sockets: Sockets | None,
    ending: Ending,
    *,
    leave: Leave | None = None,
    waiting: Callable[[Gateway], None] | None = None,
) -> None:
    """`leave`: where others let in who comes."""
    grace = max(settings.grace, settings.reload_grace) if ending.patient else settings.grace
    tell(log, "info", "server.draining", running=len(gateway.runs), grace=grace)
    telling = asyncio.create_task(_keep_telling(gateway, waiting), name="tell what is waited for")
    shortening = asyncio.create_task(_shorten(ending, settings.grace), name="hear that the end is asked for")
    if sockets is not None:
        sockets.leave()
    if leave is not None:
        grace = await leave(grace, ending.hurry)
    await _drain(gateway, grace, ending.hurry)
    if sockets is not None:
        await sockets.none(_GOODBYE)
    telling.cancel()
    shortening.cancel()


async def _keep_telling(gateway: Gateway, waiting: Callable[[Gateway], None] | None) -> None:
    while waiting is not None and len(gateway.runs):
        waiting(gateway)
        await asyncio.sleep(_TOLD_EVERY)


async def _shorten(ending: Ending, grace: float) -> None:
    if ending.patient:
        await ending.called.wait()
        await asyncio.sleep(grace)
        ending.hurry.set()


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
