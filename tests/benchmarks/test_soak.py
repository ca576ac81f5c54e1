"""A short soak is clean, and every kind of leak that is planted in the gateway is found, and nothing else with it."""

from __future__ import annotations

import asyncio

import pytest
from bench.robustness.report import Report
from bench.soak.__main__ import soak
from bench.soak.judge import Limits, Sample, judge

SECONDS = 30.0
MOST = 60.0
"""In which a planted leak is found, at the latest."""


def test_a_while_of_mixed_load_leaves_nothing_behind() -> None:
    report = asyncio.run(soak(SECONDS, clients=4))
    assert report.broken == []
    answers = next(each.measured for each in report.figures if each.what.startswith("answers"))
    assert int(answers.split()[0].replace(",", "")) > 100


@pytest.mark.parametrize("plant", ["memory", "files", "tasks", "threads"])
def test_a_leak_is_found(plant: str) -> None:
    report = asyncio.run(soak(MOST, plant=plant, clients=4))
    assert any(each.startswith(f"{plant}:") for each in report.broken), report.broken


def test_a_lost_stream_is_found() -> None:
    report = asyncio.run(soak(MOST, plant="streams", clients=4))
    assert any(each.startswith("answers, all of them right:") for each in report.broken), report.broken


def series(memory: float = 0.0, files: float = 0.0, count: int = 60) -> list[Sample]:
    """A sample each half minute; `memory` and `files` are what each of them adds."""
    return [
        Sample(n * 30.0, round(100e6 + (n % 7) * 1e6 + memory * n), round(50 + n % 3 + files * n), 20, 10, 2)
        for n in range(count)
    ]


@pytest.mark.parametrize(
    ("samples", "broken"),
    [
        (series(), []),
        (series(memory=100e3), []),  # 4 MB in twenty minutes
        (series(memory=400e3), ["memory"]),
        (series(files=1), ["files"]),
        (series(count=4), ["samples that are judged"]),
    ],
)
def test_the_trend_is_judged_and_not_one_odd_sample(samples: list[Sample], broken: list[str]) -> None:
    report = Report("a soak")
    judge(report, samples, Limits(memory=10e6))
    assert [each.what for each in report.figures if not each.kept] == broken


def test_a_peak_in_the_middle_is_no_leak() -> None:
    samples = series()
    samples[40] = Sample(samples[40].at, 400_000_000, 500, 400, 10, 2)
    report = Report("a soak")
    judge(report, samples, Limits(memory=10e6))
    assert report.broken == []
