"""Traces at `metadata` add little to a request and nothing to a delta, counted exactly beside the same without."""

from __future__ import annotations

import pytest
from bench.speed.doors import Plant
from bench.speed.measure import measure_traces
from bench.speed.traced import LIMIT, STREAMS, WHOLE

pytestmark = pytest.mark.measured


@pytest.mark.parametrize("subject", [workload.name for workload in WHOLE])
def test_traces_add_less_than_their_limit_to_a_request(subject: str) -> None:
    off, added = measure_traces(subject)
    assert added > 500, "a trace that nobody makes costs nothing"
    assert added < off * LIMIT


@pytest.mark.parametrize("subject", STREAMS)
def test_traces_add_nothing_to_a_delta(subject: str) -> None:
    off, added = measure_traces(subject)
    assert off > 100, "what is not counted is not held to anything"
    assert added < off * LIMIT / 10


@pytest.mark.parametrize(
    "at",
    [
        "isthmus.observe.traces.tracer:Tracer._plan",
        "isthmus.observe.traces.shapes:Shapes.make",
        "isthmus.store.traces.writes:add_places",
    ],
    ids=["on the loop", "where it is made", "where it is written"],
)
def test_a_cost_on_purpose_is_red(at: str) -> None:
    off, added = measure_traces("Chat, whole")
    turns = round(max(off * LIMIT - added, 0.0) / 2) + 100  # two instructions for each turn
    assert measure_traces("Chat, whole", Plant(at=at, turns=turns, only=[]))[1] > off * LIMIT
