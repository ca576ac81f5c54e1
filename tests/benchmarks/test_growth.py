"""Growth is fitted right, what grows too fast or is refused too late is said, and the core's rows are measured."""

from __future__ import annotations

import pytest
from bench.growth import core, page
from bench.growth.fit import fit

SIZES = (1, 10, 100, 500, 1000)


@pytest.mark.parametrize(
    ("power", "fixed", "good"), [(1.0, 0.0, True), (1.0, 500.0, True), (0.5, 10.0, True), (2.0, 100.0, False)]
)
def test_the_exponent_tells_the_square_from_the_line(power: float, fixed: float, good: bool) -> None:
    fitted = fit([(size, fixed + 3 * size**power) for size in SIZES])
    assert fitted.good is good
    assert fitted.exponent <= power + 0.01


def test_what_does_not_grow_says_so() -> None:
    assert fit([(size, 200 + size / 1000) for size in SIZES]).verdict == "does not grow"


def test_a_row_that_grows_with_the_square_or_is_refused_late_is_wrong() -> None:
    square = {"name": "items", "unit": "items", "points": [(size, size**2) for size in SIZES]}
    late = {
        "name": "refused",
        "unit": "tools",
        "points": [(100, 900.0), (200, 1800.0)],
        "read": [(100, 90), (200, 180)],
    }
    early = {**late, "name": "early", "points": [(100, 200.0), (200, 400.0)]}
    words = page.wrong({"rows": [square, late, early]})
    assert len(words) == 2
    assert words[0].startswith("items grows faster")
    assert "10 times what reading its JSON takes" in words[1]
    text, pictures = page.told({"rows": [square, late]})
    assert any("**grows faster than its size**" in line for line in text)
    assert all(picture.startswith("<svg") for picture in pictures.values())


def test_a_row_that_could_not_be_measured_says_so() -> None:
    whole = {"name": "items", "unit": "items", "points": [(size, size) for size in SIZES]}
    for few in ([], [(1, 20.0)]):
        grown = {"rows": [whole, {"name": "streams", "unit": "streams", "points": few}]}
        assert page.wrong(grown) == ["streams: not measured: the machine carried less than the second size"]
        assert any("streams" in line and "**not measured" in line for line in page.told(grown)[0])


def test_planning_and_streaming_are_linear_by_their_instructions() -> None:
    for row in core.rows(0.1):
        points = row["instructions"]
        assert len(points) >= 2
        assert fit(points).good, (row["name"], points)
