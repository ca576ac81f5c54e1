"""What a plan changed, where people see it."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from isthmus.server.tell import plan_header, tell_run
from isthmus.testing.fold import plan_for

ASKED = {"top_logprobs": 3, "service_tier": "flex", "truncation": "auto"}


def test_a_plan_that_changes_nothing_is_ok() -> None:
    assert plan_header(plan_for()) == {"isthmus-plan": "ok"}


def test_what_it_changes_is_counted_by_kind() -> None:
    plan = plan_for(ASKED)
    counted = dict(each.split("=") for each in plan_header(plan)["isthmus-plan"].split(", "))
    said = [diagnostic.action for diagnostic in plan.diagnostics]
    assert counted == {action: str(said.count(action)) for action in ("degraded", "ignored") if action in said}
    assert counted


def run_of(plan: Any) -> Any:
    return SimpleNamespace(id="resp_1", plan=plan)


def test_all_changes_are_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_for(ASKED)
    with caplog.at_level(logging.INFO, "isthmus.plan"):
        tell_run(run_of(plan))
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("plan.changed id=resp_1 provider=test model=test-model")
    for said in plan.diagnostics:
        assert said.path in line.partition(f" {said.action}=")[2]


def test_each_with_its_reason_is_a_line_for_those_who_want_to_know_everything(caplog: pytest.LogCaptureFixture) -> None:
    plan = plan_for(ASKED)
    with caplog.at_level(logging.DEBUG, "isthmus.plan"):
        tell_run(run_of(plan))
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.DEBUG]
    assert len(lines) == len(plan.diagnostics)
    for line, said in zip(lines, plan.diagnostics, strict=True):
        assert line.startswith(f"plan.{said.action} id=resp_1 provider=test model=test-model code={said.code}")
        assert said.path in line
        assert said.message in line.replace("\\'", "'")


def test_a_plan_that_changes_nothing_is_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "isthmus.plan"):
        tell_run(run_of(plan_for()))
    assert caplog.records == []


def test_of_very_many_changes_a_line_names_the_first(caplog: pytest.LogCaptureFixture) -> None:
    tools = [{"type": "custom", "name": f"tool_{number}"} for number in range(30)]
    plan = plan_for({**ASKED, "tools": tools})
    degraded = [said.path for said in plan.diagnostics if said.action == "degraded"]
    assert len(degraded) > 20
    with caplog.at_level(logging.INFO, "isthmus.plan"):
        tell_run(run_of(plan))
    (line,) = [record.getMessage() for record in caplog.records]
    assert f"and {len(degraded) - 20} more" in line
    assert degraded[19] in line
    assert degraded[20] not in line


def test_where_nobody_reads_it_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "isthmus.plan"):
        tell_run(run_of(plan_for(ASKED)))
    assert caplog.records == []
