"""A conversation as a tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from isthmus.ports.traced import TraceSummary
from isthmus.server.ui.tree import grow


def turn(name: str, previous: str = "") -> TraceSummary:
    return TraceSummary(id=f"req_{name}", at=0, ended_at=0, response=name, previous=previous)


def test_a_straight_one_stays_straight_and_branches_step_aside() -> None:
    turns = [turn("a"), turn("b", "a"), turn("c", "b"), turn("d", "a"), turn("e", "d"), turn("f", "gone")]
    assert [(leaf.turn.response, leaf.depth) for leaf in grow(turns)] == [
        ("a", 0),
        ("b", 1),
        ("c", 1),
        ("d", 1),
        ("e", 1),
        ("f", 0),
    ]


@given(some.lists(some.integers(-1, 30), max_size=30))
def test_every_turn_is_there_once_behind_the_one_that_it_continues(parents: list[int]) -> None:
    turns = [turn(str(at), str(parent) if 0 <= parent < at else "") for at, parent in enumerate(parents)]
    grown = [leaf.turn.response for leaf in grow(turns)]
    assert sorted(grown) == sorted(each.response for each in turns)
    for each in turns:
        if each.previous:
            assert grown.index(each.previous) < grown.index(each.response)
