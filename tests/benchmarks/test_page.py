"""The page is what the recorded figures make of it, and its pictures are whole documents."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from bench.gateways import page
from bench.gateways.plot import Bar, bars, lines
from bench.gateways.results import read, write

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_from_the_recorded_figures_and_from_nothing_else() -> None:
    for name, text in page.made().items():
        assert (DOCS / name).read_text(encoding="utf-8") == text, f"`make bench-page` would change `docs/{name}`"


def test_a_missed_budget_a_wrong_answer_and_a_busy_machine_are_said(tmp_path: Path) -> None:
    told = read("own")
    assert told is not None
    told["cpu"]["small, whole"]["isthmus"]["us"] = 301.0
    told["cpu"]["200 deltas, coalesced"]["isthmus"] = {"wrong": "says 3 characters of 5"}
    told["cpu"]["Codex request 38 kB, whole"]["isthmus"]["us"] = 899.0
    told["made"]["others"] = 0.4
    write("own", told, tmp_path)
    text = page.made(tmp_path)["benchmarks.md"]
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("|")}
    assert "**missed**" in text.partition("## Ours")[0].partition("small, whole")[2].splitlines()[0]
    assert "kept" in text.partition("## Ours")[0].partition("Codex request 38 kB, whole")[2].splitlines()[0]
    assert "wrong" in rows["200 deltas, coalesced"]
    assert "says 3 characters of 5" in text
    assert "Not a quiet machine" in text


def test_with_others_the_budgets_are_one_run_and_who_hangs_is_said(tmp_path: Path) -> None:
    own = read("own")
    assert own is not None
    peers: dict[str, Any] = json.loads(json.dumps(own))
    peers["subjects"].insert(2, {"key": "slow", "name": "Slow One", "kind": "gateway", "version": "1.2.3"})
    for name, row in peers["cpu"].items():
        row["isthmus"] = {**row["isthmus"], "us": 111.0}
        row["slow"] = {"us": 98_765.0} if name == "small, whole" else {"not": "hung 2 times before"}
    peers["cpu"]["Codex request 38 kB, whole"]["isthmus"]["us"] = 901.0
    peers["held"]["slow"] = {"500": {"wrong": "no end within 45 s", "held": False}}
    peers["start"]["slow"] = {"wrong": "does not listen"}
    peers["memory"]["slow"] = {"wrong": "hung 2 times before"}
    peers["profile"] = {"small, whole": {"server": 0.7}, "Codex request 38 kB, whole": {"bridge": 0.6, "store": 0.01}}
    write("own", own, tmp_path)
    write("peers", peers, tmp_path)
    text = page.made(tmp_path)["benchmarks.md"]
    budgets, _, after = text.partition("## Beside others")
    small = next(line for line in budgets.splitlines() if line.startswith("| small, whole"))
    assert "111 µs" in small
    assert "98,765 µs" in small
    assert "kept" in small
    missed = budgets.partition("Missed: ")[2]
    assert missed.startswith("Codex request 38 kB, whole")
    assert "Codex request 38 kB, whole (**missed**) | bridge 60%" in missed
    for words in ("Slow One 1.2.3", "hung 2 times before", "no end within 45 s", "does not listen"):
        assert words in after


@pytest.mark.parametrize("top", [3.0, 30_000.0])
def test_bars_are_drawn_to_scale_and_what_has_no_value_says_why(top: float) -> None:
    picture = bars("A & B", "µs", [Bar("one", 1.0), Bar("two", top), Bar("none", None, "answers wrong")], mark=2.0)
    root = ElementTree.fromstring(picture)
    widths = [float(each.attrib["width"]) for each in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(widths) == 2
    assert widths[1] > 2 * widths[0]
    assert "answers wrong" in picture
    assert "prefers-color-scheme:dark" in picture


def test_lines_have_a_point_for_every_figure() -> None:
    picture = lines("growth", "size", "µs", {"one": [(1, 2.0), (10, 20.0)], "two": [(1, 5.0)]})
    root = ElementTree.fromstring(picture)
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 3
