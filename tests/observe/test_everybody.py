"""Several who watch: each hears everything, and none of them can break anything."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gateway.house import Heard
from isthmus.observe.everybody import Everybody
from isthmus.ports import Ended, FirstToken


class Broken:
    def tell(self, fact: Any) -> None:
        raise ZeroDivisionError


def test_everybody_hears_everything_and_whoever_breaks_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    first, last, fact = Heard(), Heard(), FirstToken("resp_1", 1.0)
    everybody = Everybody([first, Broken(), last])
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            everybody.tell(fact)
    assert first.facts == last.facts == [fact] * 3
    assert [record.getMessage() for record in caplog.records] == ["observer.broken observer=Broken"]


class OnlyEnds:
    """Hears of ends, and nothing else."""

    def __init__(self) -> None:
        self.ends: list[Any] = []
        self.asked: list[type[Any]] = []

    def tell(self, fact: Any) -> None:
        raise AssertionError("it has an ear")

    def ear(self, kind: type[Any]) -> Any:
        self.asked.append(kind)
        return self.ends.append if kind is Ended else None


def test_whoever_listens_to_some_kinds_is_told_these_and_asked_once() -> None:
    choosy, all_ears = OnlyEnds(), Heard()
    everybody, token = Everybody([choosy, all_ears]), FirstToken("resp_1", 1.0)
    end = Ended("resp_1", "ann", "p", "m", 1, "completed", None, None, None, 1.0, None, 0, 0)
    for fact in (token, end, token, end):
        everybody.tell(fact)
    assert choosy.ends == [end, end]
    assert choosy.asked == [FirstToken, Ended]
    assert all_ears.facts == [token, end, token, end]
