"""What happens to a request, as facts, and who hears of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.capabilities import Cost
    from isthmus.errors import IsthmusError


class Sent(msgspec.Struct, frozen=True):
    """An upstream is asked."""

    id: str
    provider: str
    model: str
    attempt: int


class AttemptFailed(msgspec.Struct, frozen=True):
    """It failed, or broke off; another attempt may follow."""

    id: str
    provider: str
    model: str
    attempt: int
    failure: IsthmusError


class FirstToken(msgspec.Struct, frozen=True):
    """The model has begun to say something, so many seconds after it was asked."""

    id: str
    seconds: float


class Ended(msgspec.Struct, frozen=True):
    """A run is over: its whole life in one fact."""

    id: str
    owner: str
    provider: str
    model: str
    attempts: int
    outcome: str
    """The status of its response; `refused` where it failed before there was one."""
    failure: IsthmusError | None
    usage: Mapping[str, Any] | None
    cost: Cost
    seconds: float
    first_token: float | None
    degraded: int
    ignored: int
    background: bool = False


Fact = Sent | AttemptFailed | FirstToken | Ended


class Observer(Protocol):
    """Hears the facts of a request's life: a few for each request, none for each token."""

    def tell(self, fact: Fact) -> None:
        """Must neither wait nor raise."""
