"""The questions that owners and the operator may ask about traces, and those that make no sense."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flowing import DEEPSEEK, PLAIN, Flow
from isthmus.errors import RequestRefused
from isthmus.ports.traces import TraceFilter
from isthmus.server.traces import read_filter
from isthmus.testing import chat, error
from tracing import TRACES, traces
from waiting import until


def test_a_query_becomes_a_filter() -> None:
    asked = {"provider": "main", "since": "1.5", "until": "2", "changed": "true", "limit": "9", "model": ""}
    assert read_filter(asked) == TraceFilter(provider="main", since=1.5, until=2.0, changed=True)
    assert read_filter({}) == TraceFilter()
    for wrong in ("nan", "inf", "-1", "x"):
        with pytest.raises(RequestRefused):
            read_filter({"since": wrong})


def test_lists_are_filtered_paged_and_summed(special: Callable[..., Flow]) -> None:
    flow = special(store="memory")
    flow.script(*(chat("ok") for _ in range(4)), error(500, "broken"))
    for model in (PLAIN, DEEPSEEK, DEEPSEEK, PLAIN, DEEPSEEK):
        flow.post("/v1/responses", {"model": model, "input": "hi"})
    until(lambda: len(traces(flow)) == 5, "five were traced")
    assert [each["provider"] for each in traces(flow, "limit=2")] == ["deepseek", "plain"]
    page = flow.get(f"{TRACES}?limit=3").json
    rest = flow.get(f"{TRACES}?limit=3&after={page['last']}").json
    assert (page["has_more"], rest["has_more"], len(rest["data"])) == (True, False, 2)
    assert len(traces(flow, "provider=deepseek")) == 3
    assert len(traces(flow, "provider=deepseek&outcome=refused")) == 1
    assert traces(flow, "since=9999999999") == []
    newest = page["data"][0]["seq"]
    assert flow.get(f"{TRACES}?order=asc&after={newest}").json["data"] == []
    totals = flow.get(f"{TRACES}/totals?by=provider").json["data"]
    assert [(each["group"], each["requests"], each.get("failed", 0)) for each in totals] == [
        ("deepseek", 3, 1),
        ("plain", 2, 0),
    ]
    assert totals[0]["first_token"]["p50"] > 0
    assert sum(each["requests"] for each in flow.get(f"{TRACES}/totals?by=time&step=300").json["data"]) == 5


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "after=x",
        "order=up",
        "changed=perhaps",
        "since=soon",
        "until=-1",
        "provider=" + "x" * 600,
    ],
)
def test_a_question_that_makes_no_sense_names_its_field(flow: Flow, query: str) -> None:
    answer = flow.get(f"{TRACES}?{query}")
    assert answer.status == 400
    assert answer.error["param"] == query.partition("=")[0]
    assert flow.get(f"{TRACES}/totals?by=weather").error["param"] == "by"
    assert flow.get(f"{TRACES}/totals?step=299").error["param"] == "step"
    assert flow.get(f"{TRACES}/nobody").error["code"] == "trace_not_found"


def test_where_traces_are_off_nothing_is_kept_and_whoever_asks_is_told(special: Callable[..., Flow]) -> None:
    flow = special(extra='[trace]\ncapture = "off"\n')
    flow.script(chat("ok"))
    assert flow.create({"model": PLAIN, "input": "hi"})["status"] == "completed"
    answer = flow.get(TRACES)
    assert (answer.status, answer.error["code"]) == (404, "traces_off")
    assert flow.database is not None
    assert not [path.name for path in flow.database.parent.iterdir() if "traces" in path.name]
