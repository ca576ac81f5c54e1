"""Sums over time, as numbers, tables and plots."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ElementTree

from isthmus.ports.traces import Spread, TraceTotal
from isthmus.server.ui.overview import KEEPS, RANGES, Remembered, draw
from isthmus.testing import error
from server.ui.conftest import Browser


def test_what_was_asked_is_counted(browser: Browser) -> None:
    assert "Nothing was asked" in browser.look("/ui/overview").text
    for _ in range(3):
        browser.made({"input": "hi"})
    browser.upstream.push(error(500, "no"))
    browser.made({"input": "hi"})
    for chosen in (*RANGES, "nonsense"):
        seen = browser.look(f"/ui/overview?range={chosen}").text
        assert "<b>4</b><span>requests in" in seen, chosen
        assert "<b>1</b><span>failed or refused" in seen
        assert seen.count('class="plot"') == 4
        assert "/ui/requests?provider=main" in seen


def test_a_step_without_requests_is_an_empty_bar_and_every_step_has_its_place() -> None:
    now, step = time.time() // 300 * 300, 300
    totals = [TraceTotal(group=str(int(now - 600)), requests=4, failed=1, total=Spread(((2.0, 4),)))]
    shown = {name: (picture, series) for name, picture, series in draw(totals, now - 1200, now, step)}
    picture, series = shown["Requests"]
    assert [list(one.values) for one in series] == [[0, 0, 3, 0, 0], [0, 0, 1, 0, 0]]
    assert len(list(ElementTree.fromstring(picture).iter("title"))) == 5
    assert list(shown["Time to the end"][1][0].values) == [None, None, 2.0, None, None]


def test_sums_are_made_once_for_everybody_who_looks_at_the_same() -> None:
    now = [100.0]
    sums = Remembered(lambda: now[0])
    sums.keep("me", "24h", {"whole": 1})
    assert sums.find("me", "24h") == {"whole": 1}
    assert sums.find("you", "24h") is None, "each owner has their own"
    assert sums.find("me", "7d") is None
    now[0] += KEEPS
    assert sums.find("me", "24h") is None
    for number in range(500):
        sums.keep(str(number), "24h", {"whole": number})
    assert sum(sums.find(str(number), "24h") is not None for number in range(500)) == 64
