"""The facts of one request as they come, each with the moment when it came; nothing is made of them here."""

from __future__ import annotations

from isthmus.ports import Fact


class Draft:
    __slots__ = (
        *("answered", "at", "background", "ended", "facts", "full", "received", "request", "run", "small", "weight"),
    )

    def __init__(self, at: float, *, full: bool) -> None:
        self.at = at
        """When it began, by the clock."""
        self.full = full
        """Whether its content is wanted."""
        self.facts: list[tuple[float, Fact]] = []
        """Each with the seconds of a clock that only goes on."""
        self.request = ""
        self.run = ""
        self.weight = 0
        """About how many bytes it holds on to."""
        self.small = False
        """Whether its trace is made at once (`small`)."""
        self.received = self.answered = self.ended = self.background = False

    @property
    def over(self) -> bool:
        """Whether nothing more is to come: of a run without a request, with its end."""
        return (self.answered or not self.received) and (self.ended or not self.run)
