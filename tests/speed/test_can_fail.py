"""The guard is able to fail: what was made a fifth slower on purpose is red, a twentieth is not."""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Literal

import pytest
from bench.speed import baseline, cpu_ratio
from bench.speed.baseline import LIMIT, SCALED_LIMIT, Expected, Figures
from bench.speed.counting import count
from bench.speed.fresh import run_fresh
from bench.speed.instructions import count_instructions
from bench.speed.judge import judge, red
from bench.speed.measure import measure_counts
from bench.speed.slower import slowed
from bench.workloads import workloads

pytestmark = pytest.mark.measured

ENTRY = {
    "processor": "x86_64 some",
    "counts": {"reference": {"instructions": 1000, "calls": 10}, "plan": {"instructions": 5000, "calls": 50}},
    "doors": {"chat": {"instructions": 9000}},
    "imports": {"isthmus": {"modules": 4, "instructions": 200}},
    "cpu": {"plan": {"ratio": 2.0}},
}
REFERENCE = {"instructions": 1000.0, "calls": 10.0}


@pytest.fixture(scope="module")
def honest() -> Figures:
    return measure_counts()


@pytest.mark.parametrize("way", ["instructions", "calls"])
def test_a_fifth_more_of_what_is_counted_is_red_and_a_twentieth_is_not(
    way: Literal["instructions", "calls"], honest: Figures
) -> None:
    for share, is_red in ((0.20, True), (0.05, False)):
        counts = measure_counts({"way": way, "share": share})
        assert counts.pop("reference") == honest["reference"]
        for subject, counted in counts.items():
            assert counted[way] / honest[subject][way] == pytest.approx(1 + share, abs=0.02)
            words = red(judge({subject: {way: counted[way]}}, Expected({subject: {way: honest[subject][way]}}, LIMIT)))
            assert ["slower by" in each for each in words] == [True] * is_red


def test_counts_are_the_same_in_every_run(honest: Figures) -> None:
    assert measure_counts() == honest


def test_a_fifth_more_time_inside_c_is_red_in_the_ratio_and_a_twentieth_is_not() -> None:
    subject = "plan, small request"
    slower = [{"way": "time in C", "share": share} for share in (0.20, 0.05)]
    ratios = run_fresh("cpu_ratio", given={"only": [subject], "slower": slower, "rounds": 400})
    expected = Expected({subject: {"ratio": ratios[subject]}}, LIMIT)
    assert red(judge({subject: {"ratio": ratios[f"{subject} +0"]}}, expected))
    assert not red(judge({subject: {"ratio": ratios[f"{subject} +1"]}}, expected))


def test_the_counts_do_not_see_time_inside_c() -> None:
    """What the ratio is there for."""
    run = workloads()[-1].run
    slow = slowed(run, {"way": "time in C", "share": 1.0})
    counted = [{"word": dict(count(each))} for each in (run, slow)]
    assert red(judge(counted[1], Expected(counted[0], LIMIT))) == []


class Machine:
    """A clock that moves when work is done, and now and then when another process disturbs it."""

    def __init__(self, disturbed: Callable[[int], float]) -> None:
        self.now = 0.0
        self._slices = 0
        self._disturbed = disturbed

    def work(self, seconds: float) -> Callable[[], None]:
        def run() -> None:
            self._slices += 1
            self.now += seconds * (1 + self._disturbed(self._slices))

        return run

    def ratio(self, share: float, bound: float = 1 + LIMIT) -> float:
        runs = {"plan": self.work(1e-3 * (1 + share))}
        return cpu_ratio.measure(runs, {"plan": bound}, reference=self.work(1e-3), clock=lambda: self.now)["plan"]


@pytest.mark.parametrize(("share", "is_red"), [(0.20, True), (0.16, True), (0.14, False), (0.05, False)])
def test_the_ratio_is_red_from_15_percent_on_however_often_a_slice_is_disturbed(share: float, is_red: bool) -> None:
    quiet = Machine(lambda number: 0.0).ratio(share)
    busy = Machine(lambda number: 0.0 if number % 37 < 2 else (number * 7919 % 100) / 50).ratio(share)
    assert quiet == pytest.approx(1 + share)
    assert busy == pytest.approx(1 + share)
    assert bool(red(judge({"plan": {"ratio": busy}}, Expected({"plan": {"ratio": 1.0}}, LIMIT)))) == is_red


def test_what_had_no_quiet_slice_yet_is_sampled_further() -> None:
    """Noise through all the first rounds, then quiet: not a reason to be red."""
    first = 4 * cpu_ratio.FIRST_ROUNDS
    machine = Machine(lambda number: 0.5 if number <= first and number % 4 in (3, 0) else 0.0)
    assert machine.ratio(0.0) == pytest.approx(1.0)


def test_a_gain_has_to_be_recorded_where_the_numbers_are_exact() -> None:
    expected = baseline.expect({"3.11": ENTRY}, REFERENCE, "3.11", "x86_64 some")
    faster = {**ENTRY["counts"], "plan": {"instructions": 4000, "calls": 50}}
    assert red(judge(faster, expected.counts)) == [
        "plan: instructions went from 5000 to 4000: faster by 20%: record it with `make bench-baseline`"
    ]
    assert red(judge({"plan": {"ratio": 1.0}}, expected.cpu)) == []


def test_what_is_measured_but_not_recorded_or_recorded_but_not_measured_is_red() -> None:
    expected = Expected({"plan": {"ratio": 1.0}}, LIMIT)
    words = red(judge({"stream": {"ratio": 1.0}}, expected))
    assert ["not in the baseline" in each for each in words] == [False, True]
    assert "but not measured" in words[0]


def test_a_version_without_an_entry_is_held_to_the_nearest_one_scaled_by_the_reference_loop() -> None:
    recorded = {
        "3.11": ENTRY,
        "3.13": {**ENTRY, "counts": {**ENTRY["counts"], "plan": {"instructions": 1, "calls": 1}}},
    }
    expected = baseline.expect(recorded, {"instructions": 900.0, "calls": 10.0}, "3.10", "x86_64 some")
    assert expected.counts.figures["plan"] == {"instructions": 4500, "calls": 50}
    assert expected.counts.limit == SCALED_LIMIT
    assert red(judge({**expected.counts.figures, "plan": {"instructions": 6000, "calls": 50}}, expected.counts))


def test_a_version_whose_doors_were_not_counted_is_held_to_those_of_another_one() -> None:
    without = {**ENTRY, "counts": {**ENTRY["counts"], "reference": {"instructions": 1100, "calls": 10}}}
    del without["doors"]
    expected = baseline.expect({"3.11": ENTRY, "3.13": without}, REFERENCE, "3.13", "x86_64 some").doors
    assert expected.figures == {"chat": {"instructions": pytest.approx(9900)}}
    assert expected.limit == SCALED_LIMIT


def test_ratios_of_another_processor_are_held_to_a_wider_limit() -> None:
    here = baseline.expect({"3.11": ENTRY}, REFERENCE, "3.11", "x86_64 some").cpu
    elsewhere = baseline.expect({"3.11": ENTRY}, REFERENCE, "3.11", "arm64 other").cpu
    assert here.limit == LIMIT
    assert red(judge({"plan": {"ratio": 2.5}}, elsewhere)) == []
    assert red(judge({"plan": {"ratio": 3.1}}, elsewhere))


def test_recording_moves_the_entries_of_other_versions_in_proportion() -> None:
    counts = {"reference": {"instructions": 1000, "calls": 10}, "plan": {"instructions": 2500, "calls": 50}}
    old = {"3.11": ENTRY, "3.13": {**ENTRY, "counts": {**ENTRY["counts"], "plan": {"instructions": 4000, "calls": 40}}}}
    made = {**ENTRY, "counts": counts, "doors": {"chat": {"instructions": 4500}}}
    del made["processor"]
    new = baseline.record(old, made, "3.11", "arm64 other")
    assert new["3.11"]["counts"] == counts
    assert new["3.13"]["doors"] == {"chat": {"instructions": 4500}}
    assert new["3.11"]["processor"] == "arm64 other"
    assert new["3.13"]["counts"]["plan"] == {"instructions": 2000, "calls": 40}
    assert new["3.13"]["processor"] == "x86_64 some"


def test_every_instruction_is_counted_also_in_the_first_call_of_a_function() -> None:
    def straight() -> int:
        first = 1
        return first + first

    # The lambda around it executes as many whatever it calls; `straight` executes each of its own once.
    def nothing() -> None: ...

    def length(function: Callable[[], object]) -> int:
        return sum(each.opname not in ("CACHE", "EXTENDED_ARG") for each in dis.get_instructions(function))

    called = count_instructions(lambda: straight()) - count_instructions(lambda: nothing())
    assert called == length(straight) - length(nothing) > 0
