"""Measured against expected: slower by more than the limit is red, and so is a subject that nobody recorded.

Faster by more than the limit is red too where the numbers are exact and recorded for this very version of Python,
because a gain that is not recorded can be lost again unseen. Elsewhere, and for CPU ratios, it is only told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from bench.speed.baseline import Expected, Figures

RECORD: Final = "record it with `make bench-baseline`"


@dataclass(frozen=True, slots=True)
class Verdict:
    subject: str
    measure: str
    expected: float | None
    measured: float | None
    limit: float
    state: Literal["ok", "slower", "faster", "unknown"]
    red: bool

    @property
    def change(self) -> float:
        return self.measured / self.expected - 1 if self.measured and self.expected else 0.0

    @property
    def words(self) -> str:
        name = f"{self.subject}: {self.measure}"
        match self.state:
            case "slower":
                return f"{name} {self._step}: slower by {self.change:.0%}"
            case "faster":
                return f"{name} {self._step}: faster by {-self.change:.0%}: {RECORD}"
            case "unknown":
                missing = "is not in the baseline" if self.expected is None else "is in the baseline but not measured"
                return f"{name} {missing}: {RECORD}"
            case "ok":
                return f"{name} is as it was"

    @property
    def _step(self) -> str:
        return f"went from {self.expected:.10g} to {self.measured:.10g}"


def judge(measured: Figures, expected: Expected) -> list[Verdict]:
    verdicts = []
    for subject in dict.fromkeys((*expected.figures, *measured)):
        wanted, got = expected.figures.get(subject, {}), measured.get(subject, {})
        verdicts += [
            _judge_one(subject, measure, wanted.get(measure), got.get(measure), expected)
            for measure in dict.fromkeys((*wanted, *got))
        ]
    return verdicts


def _judge_one(subject: str, measure: str, wanted: float | None, got: float | None, expected: Expected) -> Verdict:
    state: Literal["ok", "slower", "faster", "unknown"] = "ok"
    if not wanted or got is None:
        state = "unknown"
    elif got > wanted * (1 + expected.limit):
        state = "slower"
    elif got < wanted * (1 - expected.limit):
        state = "faster"
    red = state in ("slower", "unknown") or (state == "faster" and expected.keeps_gains)
    return Verdict(subject, measure, wanted, got, expected.limit, state, red)


def red(verdicts: list[Verdict]) -> list[str]:
    """What is wrong, in words; nothing when all is well."""
    return [verdict.words for verdict in verdicts if verdict.red]
