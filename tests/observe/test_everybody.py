"""Several who watch: each hears everything, and none of them can break anything."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from gateway.house import Heard
from isthmus.observe.everybody import Everybody
from isthmus.ports import FirstToken


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
