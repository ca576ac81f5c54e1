"""One conversation, examined: its traces as the cache doctor reads them, with the words that changed.

In: the traces of its turns, oldest first, and prices. Out: what was found, and for each break, where contents were
kept, what stood there before and now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from isthmus.bridge.capabilities import Cost
from isthmus.observe.cache_doctor import examine, prompt_of
from isthmus.observe.diagnosis import Diagnosis, Examined
from isthmus.observe.inside import Inside, look_inside
from isthmus.observe.sent import content_of
from isthmus.ports.traced import Trace

Prices = Callable[[str, str], Cost]
"""Provider and model → what its tokens cost, as far as anybody knows."""


class Conversation:
    def __init__(self, traces: Sequence[Trace], prices: Prices) -> None:
        self._traces = {trace.summary.response or trace.summary.id: trace for trace in traces}
        prompts = (prompt_of(trace, prices(trace.summary.provider, trace.summary.model)) for trace in traces)
        self.found: Examined = examine([prompt for prompt in prompts if prompt is not None])
        self.name = next((trace.summary.conversation or trace.summary.thread for trace in traces), "")

    def inside(self, turn: Diagnosis) -> Inside | None:
        """What changed, word by word, where both bodies were kept."""
        if turn.broken is None or turn.against is None:
            return None
        before, after = self._body(turn.against, -1), self._body(turn.id, 0)
        return None if before is None or after is None else look_inside(turn.broken, before, after)

    def to_json(self) -> dict[str, Any]:
        shown = self.found.to_json()
        for told, turn in zip(shown["turns"], self.found.turns, strict=True):
            inside = self.inside(turn)
            if inside is not None:
                told["inside"] = msgspec.to_builtins(inside)
        return {"conversation": self.name, **shown}

    def _body(self, id: str, which: int) -> Any:
        trace = self._traces.get(id)
        calls = [] if trace is None else [call for call in trace.calls if call.error is None] or list(trace.calls)
        return content_of(calls[which].body) if calls else None
