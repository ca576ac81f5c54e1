"""A worker's end of the line to its supervisor: signs of life, and what it has counted.

It says when it serves, and every second from its loop that it lives: a loop that is stuck says nothing. It tells what
it has counted, and learns what all have counted together. When the other end is gone, the worker ends in good order.
Loaded only where there are several.
"""

from __future__ import annotations

import asyncio
import faulthandler
import itertools
import socket
import sys
from collections.abc import Callable
from typing import Final

from isthmus.errors import IsthmusError
from isthmus.observe.metrics.meters import Reading
from isthmus.server.line import Ask, Beat, Collect, Line, Message, Ready, Sum, Told
from isthmus.server.post import ASKED, Post
from isthmus.server.signals import Ending

EVERY: Final = 1.0
"""Seconds between two signs of life."""
TELLS_EVERY: Final = 5
"""Signs of life after which it tells unasked what it has counted: of one that is killed no more than that is lost."""
PATIENCE: Final = 3.0
"""Seconds to wait for what all have counted; the supervisor itself waits for less."""


class Reporting:
    """One worker's end of the line, until there is nobody at the other: then the end is asked for."""

    def __init__(self, ending: Ending, read: Callable[[], list[Reading]]) -> None:
        """`read`: what has been counted here."""
        self._ending = ending
        self._read = read
        self._line = Line(self._hear, self._lost)
        self._beats = itertools.count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Sum]] = {}

    async def open(self, post: Post) -> None:
        if ASKED is not None:
            # Told by C code, below whatever holds the interpreter up.
            faulthandler.register(ASKED, file=sys.stderr, all_threads=True)
        end = socket.socket(fileno=post.line)
        end.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self._line, sock=end)

    def start(self) -> None:
        self._line.say(Ready())
        self._again()

    def end(self) -> None:
        """With its last numbers: whatever it counted stays counted."""
        if self._timer is not None:
            self._timer.cancel()
        self._line.say(Told(0, self._read()))
        self._line.close()

    # ── what all have counted ──────────────────────────────────────────────────────────────────────

    async def collect(self, own: list[Reading]) -> Sum:
        """Of all workers; `own` is this one's part. Refused where nobody answers: half of it would be a lie."""
        number = next(self._numbers)
        answer: asyncio.Future[Sum] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._line.say(Collect(number, own))
            async with asyncio.timeout(PATIENCE):
                return await answer
        except TimeoutError as error:
            words = "the other workers' numbers could not be had just now; look again"
            raise IsthmusError(words, code="server_is_overloaded") from error
        finally:
            del self._waiting[number]

    def _again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._again)
        self._line.say(Beat() if next(self._beats) % TELLS_EVERY else Told(0, self._read()))

    def _lost(self) -> None:
        self._ending.called.set()
        self._ending.stop.set()

    def _hear(self, message: Message) -> None:
        match message:
            case Ask(number):
                self._line.say(Told(number, self._read()))
            case Sum(number):
                answer = self._waiting.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case _:
                pass
