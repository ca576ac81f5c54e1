"""Notices are carried to their receivers, for as long as this gateway lives.

Each receiver has its own courier, so that one which is out of order holds up nobody else. A courier looks when
something was queued here, when the next one is due, and every few seconds for what other gateways have left behind.
What fails waits, twice as long each time; what fails for too long is given up, aloud. While a receiver fails it gets
one notice at a time: that it is well again can be seen from one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from isthmus.errors import IsthmusError
from isthmus.gateway.announce import Announcer
from isthmus.log import tell
from isthmus.ports import Backlog, Delivery, Messenger, Outbox, Refused

log = logging.getLogger("isthmus.webhooks")

_LOOK: Final = 5.0
"""Seconds after which the outbox is looked at although nothing seems to be due."""
_TIDY: Final = 60.0
_PAUSE: Final = 0.02
_MARGIN: Final = 10.0
"""Seconds by which a notice is ours for longer than its delivery may take."""


@dataclass(frozen=True, slots=True)
class DeliveryRule:
    timeout: float = 10.0
    at_once: int = 4
    first_wait: float = 5.0
    longest_wait: float = 3600.0
    give_up: float = 259_200.0
    keep: float = 604_800.0

    def wait(self, delivery: Delivery, refused: Refused, chance: float) -> float | None:
        """Seconds until the next attempt, the last one when the time is up; `None`: there is none."""
        left = self.give_up - delivery.age
        if refused.final or left <= 0:
            return None
        # Not 2 to any power: a number of attempts has no end, and a float has.
        doubled = self.first_wait * 2.0 ** min(delivery.attempts - 1, 60)
        backoff = min(doubled, self.longest_wait) * (0.5 + chance / 2)
        return min(max(backoff, min(refused.wait, self.longest_wait)), left)


class Courier:
    """One receiver."""

    def __init__(
        self,
        name: str,
        outbox: Outbox,
        messenger: Messenger,
        *,
        holder: str,
        rule: DeliveryRule,
        chance: Callable[[], float],
    ) -> None:
        self.name = name
        self._outbox = outbox
        self._messenger = messenger
        self._holder = holder
        self._rule = rule
        self._chance = chance
        self._wake = asyncio.Event()
        self._under_way: dict[asyncio.Task[None], Delivery] = {}
        self._trouble = ""
        """Why the last attempt failed, as long as none has succeeded since."""
        self._backlog = Backlog(0, 0)

    def wake(self) -> None:
        self._wake.set()

    @property
    def backlog(self) -> Backlog:
        """As it was when somebody last looked."""
        return self._backlog

    @property
    def word(self) -> str | None:
        """What is wrong, in words; `None`: nothing."""
        if self._backlog.given_up:
            return f"given up: {self._backlog.given_up}; see `isthmus webhooks list`"
        return f"waiting: {self._backlog.waiting}; the last delivery failed: {self._trouble}" if self._trouble else None

    async def keep_going(self) -> None:
        while True:
            try:
                self._wake.clear()
                wait = await self._round()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._wake.wait()
            except Exception as error:  # whatever it is: without this task nothing would be delivered any more
                trace = None if isinstance(error, IsthmusError) else error
                tell(log, "error", "webhook.broken", endpoint=self.name, reason=error, trace=trace)
                await asyncio.sleep(_LOOK)

    async def settle(self) -> None:
        """Wait until nothing is due and nothing is under way."""
        while self._under_way or await self._is_due():
            if self._under_way:
                await asyncio.wait(list(self._under_way), return_when=asyncio.FIRST_COMPLETED)
            else:
                self.wake()
                await asyncio.sleep(_PAUSE)

    async def aclose(self) -> None:
        """What is under way is given back, for whoever comes next."""
        cut_off = dict(self._under_way)
        for task in cut_off:
            task.cancel()
        if cut_off:
            await asyncio.wait(list(cut_off))
        try:
            for task, delivery in cut_off.items():
                if task.cancelled():
                    await self._put_off(delivery, 0.0, "the gateway stopped")
        finally:
            await self._messenger.aclose()

    async def look(self) -> None:
        """How many wait, and how many were given up, also by others; a change for the worse is told."""
        found, before = await self._outbox.backlog(self.name), self._backlog
        self._backlog = found
        if found.given_up > before.given_up:
            tell(log, "error", "webhook.backlog", endpoint=self.name, waiting=found.waiting, given_up=found.given_up)

    async def _round(self) -> float:
        """Begin what may be begun; how long nothing more can be."""
        places = 1 if self._trouble else self._rule.at_once
        free = places - len(self._under_way)
        if free > 0 and await self._is_due():
            seconds = self._rule.timeout + _MARGIN
            taken = await self._outbox.take_due(self.name, holder=self._holder, seconds=seconds, most=free)
            for delivery in taken:
                task = asyncio.create_task(self._deliver(delivery), name=f"webhook {delivery.notice.id}")
                self._under_way[task] = delivery
                task.add_done_callback(self._over)
        if len(self._under_way) >= places:
            return _LOOK  # whichever ends first wakes us
        due = await self._outbox.next_due(self.name)
        return _LOOK if due is None else min(max(due, 0.0), _LOOK)

    async def _is_due(self) -> bool:
        due = await self._outbox.next_due(self.name)
        return due is not None and due <= 0

    def _over(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self.wake()
        if not task.cancelled() and (error := task.exception()) is not None:
            trace = None if isinstance(error, IsthmusError) else error
            tell(log, "error", "webhook.broken", endpoint=self.name, reason=error, trace=trace)

    async def _deliver(self, delivery: Delivery) -> None:
        notice, clock = delivery.notice, asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._rule.timeout):
                refused = await self._messenger.send(notice)
        except TimeoutError:
            refused = Refused(f"it did not answer within {self._rule.timeout:g} s")
        except Exception as error:  # a bug of ours: it waits like any other failure, or it would come back for ever
            tell(log, "error", "webhook.broken", endpoint=self.name, id=notice.id, trace=error)
            refused = Refused(f"it could not be sent: {type(error).__name__}")
        facts: dict[str, Any] = {
            "endpoint": self.name,
            "id": notice.id,
            "type": notice.type,
            "response": notice.about,
            "attempts": delivery.attempts,
        }
        if refused is None:
            self._trouble = ""
            await self._outbox.delivered(notice.id, holder=self._holder)
            tell(log, "info", "webhook.delivered", **facts, seconds=round(clock() - began, 3))
            return
        self._trouble = refused.reason
        wait = self._rule.wait(delivery, refused, self._chance())
        if wait is None:
            tell(log, "error", "webhook.given_up", **facts, reason=refused.reason)
        else:
            tell(log, "warning", "webhook.failed", **facts, reason=refused.reason, again_in=round(wait, 1))
        await self._put_off(delivery, wait, refused.reason)
        await self.look()

    async def _put_off(self, delivery: Delivery, seconds: float | None, reason: str) -> None:
        await self._outbox.put_off(delivery.notice.id, holder=self._holder, seconds=seconds, reason=reason)


class Deliveries:
    """All couriers of a gateway."""

    def __init__(
        self,
        outbox: Outbox,
        messengers: Mapping[str, Messenger],
        announcer: Announcer,
        *,
        holder: str,
        rule: DeliveryRule,
        chance: Callable[[], float],
    ) -> None:
        self._outbox = outbox
        self._rule = rule
        self._couriers = [
            Courier(name, outbox, messenger, holder=holder, rule=rule, chance=chance)
            for name, messenger in messengers.items()
        ]
        self._tasks: list[asyncio.Task[None]] = []
        announcer.queued = self.wake
        self.announcer = announcer

    def start(self) -> None:
        going = [(courier.keep_going(), f"webhooks to {courier.name}") for courier in self._couriers]
        self._tasks = [asyncio.create_task(work, name=name) for work, name in going]
        self._tasks.append(asyncio.create_task(self._keep_tidy(), name="tidy the outbox"))

    def wake(self) -> None:
        for courier in self._couriers:
            courier.wake()

    def words(self) -> dict[str, str | None]:
        """Receiver → what is wrong with it; `None`: nothing."""
        return {courier.name: courier.word for courier in self._couriers}

    def backlogs(self) -> dict[str, Backlog]:
        """Receiver → what waits for it, and what was given up, as of a minute ago."""
        return {courier.name: courier.backlog for courier in self._couriers}

    async def settle(self, seconds: float) -> None:
        """Before the end: deliver what can be delivered within so many seconds. The rest waits in the store."""
        with suppress(TimeoutError, IsthmusError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(courier.settle() for courier in self._couriers))

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for courier in self._couriers:
            try:
                await courier.aclose()
            except IsthmusError as error:  # the store is out of order: what we hold is due again by itself
                tell(log, "error", "webhook.broken", endpoint=courier.name, reason=error)

    async def _keep_tidy(self) -> None:
        known = frozenset(courier.name for courier in self._couriers)
        while True:
            try:
                await self._outbox.tidy_outbox(known=known, give_up=self._rule.give_up, keep=self._rule.keep)
                for courier in self._couriers:
                    await courier.look()
            except Exception as error:
                trace = None if isinstance(error, IsthmusError) else error
                tell(log, "error", "webhook.broken", reason=error, trace=trace)
            await asyncio.sleep(_TIDY)
