"""Plots are well-formed pictures of exactly what they are given, whatever stands in it."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as some

from isthmus.server.ui.plots import HEIGHT, Series, bars, lines, nice
from isthmus.server.ui.words import count

NAME = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert(1)</script>\"&'"


def parse(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)


def test_a_stack_is_as_high_as_its_parts() -> None:
    picture = parse(bars(["a", "b"], [Series("good", "ok", [3, 0]), Series("bad", "bad", [1, 4])], count, "t"))
    good = [float(one.get("height", "")) for one in picture.iter("rect") if one.get("class") == "p-ok"]
    bad = [float(one.get("height", "")) for one in picture.iter("rect") if one.get("class") == "p-bad"]
    assert len(good) == 1, "nothing is drawn of nothing"
    assert good[0] == pytest.approx(3 * bad[0], rel=0.01)
    assert bad[1] == pytest.approx(good[0] + bad[0], rel=0.01)
    assert [one.text for one in picture.iter("title")] == ["a: 3 good, 1 bad", "b: 0 good, 4 bad"]


def test_a_line_is_broken_where_there_is_no_value() -> None:
    picture = parse(lines(list("abcde"), [Series("x", "ok", [1, 2, None, 3, 4])], count))
    assert len(list(picture.iter("polyline"))) == 2
    assert len(list(picture.iter("circle"))) == 4


@given(some.lists(some.floats(0, 1e12), max_size=60), some.text(max_size=20))
def test_any_numbers_and_names_stay_inside(values: list[float], name: str) -> None:
    name = "".join(letter for letter in name if letter.isprintable())
    labels = [name] * len(values)
    for picture in (
        bars(labels, [Series(name, "ok", values)]),
        lines(labels, [Series(name, "ok", values)], count, name),
    ):
        for one in parse(picture).iter("rect"):
            assert 0 <= float(one.get("y", "")) <= HEIGHT


def test_hostile_names_stay_text() -> None:
    for picture in (
        bars([HOSTILE], [Series(HOSTILE, "ok", [1])], count, HOSTILE),
        lines([HOSTILE], [Series(HOSTILE, "ok", [1])], count, HOSTILE),
    ):
        assert "<script>" not in picture
        parse(picture)


@pytest.mark.parametrize(("value", "top"), [(0, 1), (1, 1), (1.1, 2), (2.2, 2.5), (3, 5), (7, 10), (1234, 2000)])
def test_an_axis_ends_with_a_round_number(value: float, top: float) -> None:
    assert nice(value) == pytest.approx(top)
