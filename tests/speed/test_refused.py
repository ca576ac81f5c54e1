"""A request with more tools than its provider takes is refused early: it costs little more than reading its JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from bench.growth.core import least_of, refusing, with_tools
from bench.growth.page import EARLY
from bench.speed.counting import count

from isthmus.protocol.json import count_values


def instructions(raw: bytes) -> int:
    return count(refusing(raw))["instructions"]


def values(raw: bytes) -> int:
    return count_values(raw, 10**9)


def test_refusing_a_thousand_takes_fewer_instructions_than_they_have_values() -> None:
    few, many = with_tools(129), with_tools(1000)
    assert instructions(many) < values(many) / 2
    assert instructions(many) < 1.5 * instructions(few), "nothing is done for each of them but within C"


def test_of_those_in_a_namespace_nothing_is_made() -> None:
    body: dict[str, Any] = json.loads(with_tools(1000))
    raw = msgspec.json.encode({**body, "tools": [{"type": "namespace", "name": "n", "tools": body["tools"]}]})
    assert instructions(raw) < 25 * values(raw)


@pytest.mark.measured
@pytest.mark.parametrize("tools", [129, 1000])
def test_its_cpu_time_is_a_small_multiple_of_reading(tools: int) -> None:
    raw = with_tools(tools)
    # A third more than where the table of growth calls it late: whatever else runs on the machine.
    assert least_of(refusing(raw)) < 1.33 * EARLY * least_of(lambda: msgspec.json.decode(raw))
