"""How a cost grows with a size: the exponent of its upper half, and what that means.

In: points of size and cost. Out: the exponent (1: in proportion; 2: with the square; 0: not at all) as the slope of
the best line through the logarithms of the larger half, where what a request costs anyway weighs least, and a
verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

Point = tuple[float, float]
LINEAR: Final = 1.15
"""Exponents up to this one are in proportion: a fit through a few points is no better."""
FLAT: Final = 0.15


@dataclass(frozen=True, slots=True)
class Fit:
    exponent: float
    each: float
    """What one more costs, between the two largest sizes."""
    verdict: str

    @property
    def good(self) -> bool:
        return self.exponent <= LINEAR


def fit(points: Sequence[Point]) -> Fit:
    ordered = sorted(points)
    half = ordered[-max(2, (len(ordered) + 1) // 2) :]
    xs, ys = [math.log(x) for x, _ in half], [math.log(max(y, 1e-9)) for _, y in half]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - middle_x) ** 2 for x in xs)
    exponent = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / across if across else 0.0
    (x1, y1), (x2, y2) = ordered[-2], ordered[-1]
    each = (y2 - y1) / (x2 - x1)
    if exponent <= FLAT:
        verdict = "does not grow"
    elif exponent <= LINEAR:
        verdict = "linear or better"
    else:
        verdict = "**grows faster than its size**"
    return Fit(round(exponent, 2), each, verdict)
