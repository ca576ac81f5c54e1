"""The dashboard and the alerts speak of metrics that there are, by labels that these have, with values that occur."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import pytest

from doc_pages import ROOT
from isthmus.errors import FAILURES
from isthmus.observe.metrics.catalog import CATALOG
from isthmus.observe.metrics.observer import OUTCOMES

DASHBOARD: Final[dict[str, Any]] = json.loads((ROOT / "deploy/grafana/isthmus.json").read_text(encoding="utf-8"))
ALERTS: Final = (ROOT / "deploy/prometheus/alerts.yml").read_text(encoding="utf-8")
NAME: Final = re.compile(r"\b(?:isthmus|process)_\w+")
CHOSEN: Final = re.compile(r"\b((?:isthmus|process)_\w+)\{([^}]*)\}")
MATCHER: Final = re.compile(r'(\w+)\s*(?:=~|!=|=)\s*"([^"]*)"')
EVERYWHERE: Final = {"instance", "job", "le"}
"""Labels that Prometheus itself adds."""
VALUES: Final = {
    "status": OUTCOMES | {"5.."},
    "code": set(FAILURES),
    "state": {"queued", "running", "given_up", "waiting"},
    "kind": {"cached", "input"},
    "action": {"supported"},
}


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> dict[str, str]:
    told = {
        f"dashboard: {panel['title']} {each['refId']}": each["expr"] for panel in panels() for each in panel["targets"]
    }
    variables = [each["definition"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query"]
    told |= {f"variable: {query}": query for query in variables}
    for rule in ALERTS.split("- alert: ")[1:]:
        expr = re.search(r"expr:(.*?)\n\s+(?:for|labels):", rule, re.DOTALL)
        assert expr is not None
        told[f"alert: {rule.split()[0]}"] = expr[1]
    return told


every_query = pytest.mark.parametrize("query", queries().values(), ids=queries().keys())


def metric_of(name: str) -> str:
    return name if name in CATALOG else re.sub(r"_(bucket|count|sum)$", "", name)


@every_query
def test_it_asks_for_metrics_that_there_are(query: str) -> None:
    for name in NAME.findall(query):
        assert metric_of(name) in CATALOG
        assert (name != metric_of(name)) == (CATALOG[metric_of(name)].kind == "histogram")
    assert NAME.search(query) or 'up{job="isthmus"}' in query


@every_query
def test_it_chooses_by_labels_and_values_that_occur(query: str) -> None:
    for name, chosen in CHOSEN.findall(query):
        labels = set(CATALOG[metric_of(name)].labels) | EVERYWHERE
        for label, value in MATCHER.findall(chosen):
            assert label in labels, f"`{name}` has no `{label}`"
            if not value.startswith("$") and label not in EVERYWHERE:
                assert set(value.split("|")) <= VALUES[label]


@every_query
def test_it_groups_by_labels_that_they_have(query: str) -> None:
    names = [metric_of(name) for name in NAME.findall(query)]
    for grouped in re.findall(r"by \(([^)]*)\)", query):
        for label in grouped.replace(" ", "").split(","):
            assert any(label in {*CATALOG[name].labels, *EVERYWHERE} for name in names), label


def test_no_metric_is_watched_by_nobody() -> None:
    """Whatever is counted is on the dashboard, in an alert, or says only what somebody would look up."""
    named = {metric_of(name) for query in queries().values() for name in NAME.findall(query)}
    looked_up = {
        "process_virtual_memory_bytes",
        "process_start_time_seconds",
        "isthmus_draining",
        "isthmus_workers_started_total",
        "isthmus_otel_spans_total",
    }
    assert set(CATALOG) - named == looked_up


def test_panels_have_their_own_place_and_words() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        place = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not place & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= place
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert all(each["datasource"]["uid"] == "${datasource}" for panel in panels() for each in panel["targets"])
