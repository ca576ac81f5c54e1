"""What is made in the background survives a store that fails for a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowing import PLAIN, running_flow
from isthmus.errors import ConfigError
from isthmus.ports import LOCAL, EventBatch
from isthmus.store.memory import MemoryStore
from isthmus.testing import Gate, chat_chunks, stream
from talking import Stream, finished


@pytest.mark.parametrize("failing", [1, 3])
def test_events_that_the_store_does_not_take_are_kept_with_the_next_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failing: int
) -> None:
    append, tries = MemoryStore.append_events, []

    async def append_at_last(
        self: MemoryStore, id: str, batch: EventBatch, *, owner: str = LOCAL, holder: str | None = None
    ) -> bool:
        tries.append(batch.first)
        if 1 < len(tries) <= 1 + failing:  # nothing is told before the store has taken the first ones
            raise ConfigError("the disk is full", code="store_unavailable")
        return await append(self, id, batch, owner=owner, holder=holder)

    monkeypatch.setattr(MemoryStore, "append_events", append_at_last)
    role, *rest = chat_chunks("Hello there", pieces=4)
    gates = [Gate() for _ in range(4)]
    told = [part for gate, chunk in zip(gates, rest[:4], strict=True) for part in (gate, chunk)]
    with running_flow(tmp_path, store="memory") as flow:
        flow.script(stream([role, *told, *rest[4:]]))
        body = {"model": PLAIN, "input": "slow", "background": True, "stream": True}
        with flow.streaming("/v1/responses", body) as following:
            events = _through(following, "response.in_progress")
            for gate in gates:  # one word at a time, so that the store is offered each of them alone
                gate.open()
                events += _through(following, "response.output_text.delta")
            events += following
        response = finished(events)
        assert (response["status"], response["output_text"]) == ("completed", "Hello there")
        assert flow.get(f"/v1/responses/{response['id']}").json["status"] == "completed"
        with flow.streaming(f"/v1/responses/{response['id']}?stream=true", method="GET") as again:
            assert list(again) == events
    assert len(tries) > failing


def _through(following: Stream, kind: str) -> list[Any]:
    """The events up to the next one of this type."""
    events: list[Any] = []
    while not events or events[-1]["type"] != kind:
        event = following.next()
        assert event is not None, f"the stream ended without `{kind}`"
        events.append(event)
    return events
