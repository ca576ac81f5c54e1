"""The loop of the fuzzer: make or change a case, send it, judge it, keep it if it reached something new.

It begins with the edges of all bounds, the same ones in every campaign. What follows is seeded: the same seed and the
same product give the same cases. Learning is light: a case that reaches lines which none before it had reached becomes
a parent of later ones.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.fuzz.case import Case, change, make, plain_cases
from bench.fuzz.edges import edges
from bench.fuzz.house import House, Seen
from bench.fuzz.oracle import judge


@dataclass(frozen=True, slots=True)
class Finding:
    number: int
    """Which case it was: with the seed, the way to see it again."""
    problem: str
    case: Case


@dataclass(slots=True)
class Outcome:
    seed: int
    cases: int = 0
    kept: int = 0
    lines: int = 0
    """Lines of the product that were reached."""
    heaviest: int = 0
    findings: list[Finding] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)


def fuzz(
    house: House,
    *,
    seed: int,
    cases: int | None = None,
    seconds: float | None = None,
    enough: int = 10,
    look: Callable[[Case, Seen], object] | None = None,
) -> Outcome:
    """Until so many cases were tried, so much time is over, or enough was found."""
    chance = random.Random(seed)
    outcome = Outcome(seed)
    corpus: list[Case] = []
    served: list[Case] = []
    """Those of the corpus that were let in: their children come farther."""
    first = iter((*plain_cases(), *(edge.case for edge in edges(house.limits))))
    deadline = None if seconds is None else time.monotonic() + seconds
    while len(outcome.findings) < enough and (cases is None or outcome.cases < cases):
        if deadline is not None and time.monotonic() > deadline:
            break
        case = next(first, None) or _next(corpus, served, chance)
        seen = house.send(case)
        outcome.cases += 1
        outcome.statuses[seen.status] = outcome.statuses.get(seen.status, 0) + 1
        outcome.heaviest = max(outcome.heaviest, seen.lines)
        outcome.findings += [Finding(outcome.cases, problem, case) for problem in judge(case, seen, house.limits)]
        if seen.new:
            corpus.append(case)
            if seen.status == 200:
                served.append(case)
        if look is not None:
            look(case, seen)
    outcome.kept, outcome.lines = len(corpus), len(house.counter.reached)
    return outcome


def _next(corpus: list[Case], served: list[Case], chance: random.Random) -> Case:
    fresh = make(chance)
    if not corpus or chance.random() >= 0.7:
        return fresh
    parents = served if served and chance.random() < 0.8 else corpus
    parent = parents[-1 - int(len(parents) * chance.random() ** 2)]  # the latest came the farthest
    return change(parent, fresh, chance)


def tell(outcome: Outcome) -> str:
    """For a person, with what it takes to see each finding again."""
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(outcome.statuses.items()))
    head = (
        f"seed {outcome.seed}: {outcome.cases:,} cases, {outcome.kept} worth keeping, {outcome.lines:,} lines reached, "
        f"at most {outcome.heaviest:,} lines for one; {statuses}"
    )
    told = [
        f"\ncase {one.number}: {one.problem}\n  {one.case.path} {one.case.raw()[:600]!r}" for one in outcome.findings
    ]
    return "\n".join([head, *told])
