"""What prompt caches found of a conversation, turn by turn (see `observe.cache_doctor`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isthmus.bridge.capabilities import Cost
from isthmus.observe.conversation import Conversation
from isthmus.observe.diagnosis import Examined
from isthmus.ports.traced import TraceSummary

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

MOST: Final = 40
"""Turns that one page examines, the latest."""


async def examined(look: Look, turns: Sequence[TraceSummary]) -> Examined | None:
    """`None`: there is nothing to compare."""
    traces = look.traces
    if traces is None or len(turns) < 2:
        return None
    kept = [await traces.find(look.visitor.owner, turn.id) for turn in turns[-MOST:]]

    def prices(provider: str, model: str) -> Cost:
        served = look.gateway.directory.served.get(provider)
        return served.capabilities(model).cost if served is not None else Cost()

    found = Conversation([trace for trace in kept if trace is not None], prices).found
    return found if len(found.turns) > 1 else None
