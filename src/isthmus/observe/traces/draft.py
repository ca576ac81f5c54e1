"""The facts of one request as they come; nothing is made of them here."""

from __future__ import annotations

from typing import Any

import msgspec

from isthmus.ports import Answered, Ended, Planned, Received


class Draft(msgspec.Struct):
    at: float
    """When it began, by the clock of the day."""
    began: float
    """The same by a clock that only goes on, and when the last fact came."""
    last: float
    full: bool = False
    """Whether its content is wanted."""
    weight: int = 0
    """About how many bytes it holds on to."""
    received: Received | None = None
    planned: Planned | None = None
    facts: list[tuple[float, Any]] = []
    """What happened between these two, each with the moment when it came."""
    ended: Ended | None = None
    answered: Answered | None = None

    @property
    def id(self) -> str:
        """Of its request; of a run without one, the run's."""
        request = self.answered or self.received
        if request is not None:
            return request.request
        return "" if self.planned is None else self.planned.request or self.planned.id
