"""Who runs the tools that a client leaves to the server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.types.managed import ManagedCall, Ran
    from isthmus.protocol.json import JsonObject

Tell = Callable[[str, "JsonObject"], None]
"""Hears of progress: the last word of the event's type (`searching`, `partial_image`), and its own fields."""


class ToolRunner(Protocol):
    """Carries out one kind of managed call."""

    async def run(self, call: ManagedCall, tell: Tell) -> Ran:
        """What came of it. Raises nothing but cancellation: a failure is a result. Bounded in time by itself."""
