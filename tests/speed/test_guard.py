"""No hot path is slower than `baseline.json` says. What each measure sees and does not see: docs/reference/speed.md."""

from __future__ import annotations

import pytest
from bench.speed.judge import judge, red
from bench.speed.measure import expect, measure_counts, measure_doors, measure_imports

pytestmark = pytest.mark.measured


def test_planning_and_streaming_take_no_more_instructions_and_calls_than_recorded() -> None:
    counts = measure_counts()
    assert red(judge(counts, expect(counts).counts)) == []


def test_a_request_takes_no_more_instructions_than_recorded_in_any_door() -> None:
    """From the socket to the trace that is written, with SQLite and traces as they come."""
    assert red(judge(measure_doors(), expect().doors)) == []


def test_imports_load_and_run_no_more_than_recorded_and_nothing_heavy() -> None:
    imports, heavy = measure_imports()
    assert [*heavy, *red(judge(imports, expect().imports))] == []
