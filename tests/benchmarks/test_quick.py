"""The harness works and its figures are sane: what `python -m bench.gateways --quick` does, and less."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from bench.gateways import page
from bench.gateways.run import QUICK, everything
from bench.gateways.subjects import DEFAULT, FLOORS, Subject
from bench.gateways.workloads import WORKLOADS


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    workloads = [each for each in WORKLOADS if each.part != "chain"]
    ours = dataclasses.replace(DEFAULT, settle=0.05)  # nobody looks at how much it is
    return asyncio.run(everything(QUICK, [ours, FLOORS[1], mumbling(), absent()], workloads))


def mumbling() -> Subject:
    """A gateway that forwards what was asked of it and translates nothing: it answers, but not right."""
    return dataclasses.replace(FLOORS[0], key="mumbling", kind="gateway", doors={"responses": "/v1/chat/completions"})


def absent() -> Subject:
    return dataclasses.replace(FLOORS[0], key="absent", start=lambda folder, port, upstream: (["false"], {}))


def test_every_workload_has_a_figure_in_every_door_of_ours(told: dict[str, Any]) -> None:
    for name, row in told["cpu"].items():
        assert row["isthmus"].get("us", 0) > 0, (name, row["isthmus"])
        assert row["isthmus"]["load_us"] + row["isthmus"]["upstream_us"] > 0


def test_what_translates_costs_more_than_what_carries_bytes(told: dict[str, Any]) -> None:
    for name in ("small, whole", "200 deltas, coalesced", "Codex request 38 kB, whole"):
        row = told["cpu"][name]
        assert row["isthmus"]["us"] > row["floor-lean"]["us"] > 0


def test_what_cannot_be_run_or_is_wrong_says_so_and_has_no_figure(told: dict[str, Any]) -> None:
    assert told["cpu"]["WebSocket, small"]["floor-lean"] == {"not": "carries bytes and translates nothing"}
    assert "mumbling" in told["absent"] or "wrong" in told["cpu"]["small, whole"]["mumbling"]
    assert "absent" in told["absent"]


def test_streams_memory_and_start_are_told(told: dict[str, Any]) -> None:
    assert told["first"]["isthmus"]["first_p50"] > 0
    held = told["held"]["isthmus"]["20"]
    assert held["completed"] == 20
    assert held["gap_p50"] == pytest.approx(50, abs=40)
    assert told["memory"]["isthmus"]["requests"] >= 800
    assert 30e6 < told["start"]["isthmus"]["memory"] < 300e6
    assert told["start"]["isthmus"]["answered"] > told["start"]["isthmus"]["listening"] > 0


def test_the_run_names_its_machine_and_versions_and_can_be_told(told: dict[str, Any]) -> None:
    made = told["made"]
    assert {"date", "commit", "processor", "python", "packages", "others"} <= made.keys()
    text = "\n".join(page.tables(told))
    assert "| small, whole" in text
    assert "carries bytes and translates nothing" in text
