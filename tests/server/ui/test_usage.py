"""What was used, on the page: tiles, bars for each day, a table, and the same as CSV."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from isthmus.access.report import Question
from isthmus.ports.spending import NANO, Use
from isthmus.server.ui.usage import draw
from server.ui.conftest import Browser


def test_what_was_used_is_shown_and_can_be_taken_home(browser: Browser) -> None:
    assert "Nothing was used" in browser.look("/ui/usage").text
    for _ in range(3):
        browser.made({"input": "hi"})
    seen = browser.look("/ui/usage").text
    assert "<b>3</b><span>requests from" in seen
    assert seen.count('class="plot"') == 3
    assert '<a href="/ui/usage.csv?' in seen
    table = browser.look("/ui/usage.csv?by=provider")
    assert table.text.splitlines()[0].startswith("provider,requests")
    assert table.text.splitlines()[1].startswith("main,3,")


def test_a_question_that_makes_no_sense_is_told_in_words(browser: Browser) -> None:
    seen = browser.look("/ui/usage?since=soon")
    assert "must be a day" in seen.text


def test_words_of_clients_are_only_words(browser: Browser) -> None:
    browser.made({"input": "hi", "model": "main/<script>x"})
    seen = browser.look("/ui/usage").text
    assert "<script>x" not in seen
    assert "&lt;script&gt;x" in seen


def test_every_day_has_its_bar() -> None:
    days = [Use("2026-11-16", "", "", "", "", "", 4, 100, 40, 10, 2 * NANO)]
    shown = {name: (picture, series) for name, picture, series in draw(days, Question("2026-11-15", "2026-11-17"))}
    assert [list(one.values) for one in shown["Tokens"][1]] == [[0, 60, 0], [0, 40, 0], [0, 10, 0]]
    assert list(shown["Cost"][1][0].values) == [0.0, 2.0, 0.0]
    assert len(list(ElementTree.fromstring(shown["Requests"][0]).iter("title"))) == 3
