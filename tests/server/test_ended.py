"""Sessions of the page that are over."""

from __future__ import annotations

from isthmus.server.ended import MOST, Ended


def test_what_is_ended_here_is_told_and_what_is_heard_is_not_told_again() -> None:
    ended, told = Ended(), list[str]()
    ended.tell = told.append
    ended.add("mine")
    ended.hear("theirs")
    assert "mine" in ended
    assert "theirs" in ended
    assert told == ["mine"]


def test_only_the_last_ones_are_remembered() -> None:
    ended = Ended()
    for number in range(MOST + 1):
        ended.add(str(number))
    assert "0" not in ended
    assert str(MOST) in ended
