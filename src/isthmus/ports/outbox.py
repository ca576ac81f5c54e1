"""The outbox: notices to receivers outside, queued with what they tell of, delivered later by whoever is there.

A notice is written in the transaction that writes the end of its response: neither is ever there without the other.
Delivery is at least once. Who takes a notice has it for a while; if nothing is heard of it by then, it is due again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from isthmus.ports.records import LOCAL


@dataclass(frozen=True, slots=True)
class Notice:
    """One message for one receiver."""

    id: str
    """The same at every attempt: by it a receiver knows what it has already."""
    endpoint: str
    """The receiver's name in the configuration: its address and its secret may change while this waits."""
    type: str
    about: str
    """The response that it tells of. A receiver is told of one once."""
    body: bytes
    owner: str = LOCAL
    most: int = 10_000
    """How many may wait for that receiver. One more is kept as given up, and so many of those at the most."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A notice on its way; the store's clock says how long, in seconds from now."""

    notice: Notice
    attempts: int
    """How often it was taken to be sent."""
    age: float
    """Since it was queued, or since somebody wanted it sent again."""
    due: float
    """Until it may be taken; of one that was given up, how long ago that was, below 0."""
    reason: str = ""
    """Why the last attempt failed."""
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Backlog:
    """How it stands with one receiver."""

    waiting: int
    given_up: int


@dataclass(frozen=True, slots=True)
class Refused:
    """What became of an attempt that failed, in words without secrets."""

    reason: str
    wait: float = 0.0
    """Seconds that the receiver asks for."""
    final: bool = False
    """Whether it says that it wants no more of this."""


class Messenger(Protocol):
    """The way to one receiver."""

    async def send(self, notice: Notice) -> Refused | None:
        """Hand it over; `None`: it was taken. However long that lasts: the caller has the clock."""

    async def aclose(self) -> None: ...


class Outbox(Protocol):
    """Notices are queued by `Store.save` and `Store.update_status`, never by themselves."""

    async def take_due(self, endpoint: str, *, holder: str, seconds: float, most: int) -> list[Delivery]:
        """Up to `most` notices for a receiver whose time has come, the longest due first.

        They are this holder's for `seconds`, and nobody else's: then they are due again. A take counts as an attempt.
        """

    async def next_due(self, endpoint: str) -> float | None:
        """Seconds until one may be taken, 0 or less: now. `None`: none waits."""

    async def delivered(self, id: str, *, holder: str) -> bool:
        """It was handed over, and is forgotten. False: it is not this holder's any more."""

    async def put_off(self, id: str, *, holder: str, seconds: float | None, reason: str) -> bool:
        """It was not: it is due again in so many seconds; `None`: never, it is given up. False: as above."""

    async def backlog(self, endpoint: str) -> Backlog: ...

    async def deliveries(self, *, most: int = 1000) -> list[Delivery]:
        """All that is kept, of every receiver: what was given up first, then what is due first."""

    async def deliver_again(self, id: str | None = None) -> int:
        """Have one sent now as if it were new, or all that were given up. What is being sent is left alone.

        How many they are.
        """

    async def forget_deliveries(self, id: str | None = None) -> int:
        """Forget one, or all that were given up; how many they are. What is being sent is left alone."""

    async def tidy_outbox(self, *, known: frozenset[str], give_up: float, keep: float) -> int:
        """Give up what waits since `give_up` seconds for a receiver that is not `known`; forget what was given up
        `keep` seconds ago. How many rows changed."""
