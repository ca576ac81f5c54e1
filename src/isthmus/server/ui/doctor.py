"""What prompt caches found of a conversation, turn by turn (see `observe.cache_doctor`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isthmus.bridge.capabilities import Cost
from isthmus.observe.cache_doctor import examine, prompt_of
from isthmus.observe.diagnosis import Examined
from isthmus.ports.traces import TraceSummary

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

MOST: Final = 40
"""Turns that one page examines, the latest."""


async def examined(look: Look, turns: Sequence[TraceSummary]) -> Examined | None:
    """`None`: there is nothing to compare."""
    traces = look.traces
    if traces is None or len(turns) < 2:
        return None
    found = [await traces.find(look.visitor.owner, turn.id) for turn in turns[-MOST:]]
    prompts = [prompt_of(trace, _prices(look, trace.summary)) for trace in found if trace is not None]
    told = [prompt for prompt in prompts if prompt is not None]
    return examine(told) if len(told) > 1 else None


def _prices(look: Look, summary: TraceSummary) -> Cost:
    served = look.gateway.directory.served.get(summary.provider)
    return served.capabilities(summary.model).cost if served is not None else Cost()
