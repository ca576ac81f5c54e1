"""How a worker shows that it lives, and what it tells and hears on the line."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from isthmus.errors import IsthmusError
from isthmus.observe.metrics.meters import Meters, Reading
from isthmus.server.line import Ask, Beat, Collect, Line, Message, Ready, Sum, Told
from isthmus.server.post import Post
from isthmus.server.reporting import EVERY, PATIENCE, TELLS_EVERY, Reporting
from isthmus.server.signals import Ending
from own_time import clock, run_in_own_time, turns

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no workers")


class Supervising:
    """The other end."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Message] = asyncio.Queue()
        self.line = Line(self.heard.put_nowait, lambda: None)
        self.ending = Ending()
        self._over = asyncio.Event()

    @asynccontextmanager
    async def worker(self, read: list[Reading] | None = None) -> AsyncIterator[Reporting]:
        ours, theirs = socket.socketpair()
        self.line = Line(self.heard.put_nowait, self._over.set)
        await asyncio.get_running_loop().create_unix_connection(lambda: self.line, sock=ours)
        reporting = Reporting(self.ending, lambda: read or [])
        await reporting.open(Post(1, 0, theirs.detach()))
        yield reporting
        reporting.end()
        await self._over.wait()
        await self.ending.stop.wait()


def test_a_sign_of_life_comes_every_second_and_now_and_then_what_was_counted() -> None:
    async def live() -> None:
        supervising = Supervising()
        async with supervising.worker() as reporting:
            reporting.start()
            assert await supervising.heard.get() == Ready()
            signs = [await supervising.heard.get()]
            for _ in range(TELLS_EVERY - 1):
                clock().skip(EVERY)
                signs.append(await supervising.heard.get())
            assert signs == [*[Beat()] * (TELLS_EVERY - 1), Told(0, [])]
        assert await supervising.heard.get() == Told(0, []), "its last numbers"

    run_in_own_time(live())


async def test_it_ends_when_nobody_hears_it_any_more() -> None:
    supervising = Supervising()
    async with supervising.worker():
        supervising.line.close()
        await supervising.ending.stop.wait()
        assert not supervising.ending.patient, "nobody has taken its place"


async def test_it_tells_what_it_counted_when_it_is_asked_and_hears_what_all_have() -> None:
    supervising, own = Supervising(), Meters().read()
    async with supervising.worker(own) as reporting:
        supervising.line.say(Ask(5))
        assert await supervising.heard.get() == Told(5, own)
        collecting = asyncio.create_task(reporting.collect(own))
        asked = await supervising.heard.get()
        assert isinstance(asked, Collect)
        supervising.line.say(Sum(asked.number + 1, [], 9, 9))
        supervising.line.say(Sum(asked.number, [], 2, 1))
        found = await collecting
        assert (found.answering, found.silent) == (2, 1)


def test_half_of_the_numbers_are_not_told() -> None:
    async def live() -> None:
        supervising = Supervising()
        async with supervising.worker() as reporting:
            collecting = asyncio.create_task(reporting.collect([]))
            await supervising.heard.get()
            clock().skip(PATIENCE + 1)
            with pytest.raises(IsthmusError, match="look again"):
                await collecting
            await turns()

    run_in_own_time(live())
