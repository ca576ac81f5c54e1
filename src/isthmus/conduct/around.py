"""Those around a run: why it is told to end, who keeps it, counts it and takes note of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from isthmus.bridge.commands import Done
from isthmus.bridge.types.plan import Plan
from isthmus.protocol.events import Event

if TYPE_CHECKING:
    from isthmus.conduct.run import Run

Stop = Literal["cancelled", "left", "shutdown", "timeout", "lost", "steered"]
Save = Callable[[Done, Plan], Awaitable[Done | None]]
"""Makes an end durable and says which one is told: another one, where somebody else has ended the response before;
none, where somebody else is about to."""


class Track(Protocol):
    """Whoever keeps count of the runs that are under way."""

    def begun(self, run: Run) -> None: ...

    def over(self, run: Run) -> None: ...


class Recorder(Protocol):
    """Takes note of the events of a stream as they are told."""

    def add(self, events: Sequence[Event]) -> None: ...


class Stopped(Exception):
    """`stop` was called while nobody was waiting on the upstream."""
