"""The facts of one request as they come; nothing is made of them here."""

from __future__ import annotations

import msgspec

from isthmus.ports import Answered, Ended, Planned, Received


class Draft(msgspec.Struct):
    began: float
    """When its first byte came, or where there is no request when it was planned, by a clock that only goes on …"""
    last: float
    """… and when the last fact came."""
    planned: Planned | None = None
    ended: Ended | None = None
    answered: Answered | None = None
    over: float = 0.0
    """When its run ended, by the same clock."""
    at: float = 0.0
    """When it began, by the clock of the day."""
    full: bool = False
    """Whether its content is wanted."""
    weight: int = 4_000
    """About how many bytes it holds on to: so many beside the bodies that it refers to."""

    @property
    def received(self) -> Received | None:
        return None if self.answered is None else self.answered.received
