"""Calls and outputs find each other by id, by order, by name; never by guess."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.history.pairing import find_late_outputs, is_unnamed, pair_outputs
from isthmus.errors import RequestRefused

USER = {"type": "message", "role": "user", "content": "hi"}


def call(call_id: str, name: str = "f", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": "{}", **more}


def output(call_id: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "done", **more}


SEARCH = {"type": "tool_search_call", "call_id": None, "arguments": {}}
FOUND = {"type": "tool_search_output", "call_id": None, "tools": []}
PAIRS: dict[str, tuple[list[dict[str, Any]], dict[int, int]]] = {
    "in any order": ([call("a"), call("b"), output("b"), output("a")], {0: 3, 1: 2}),
    "one id in parallel, in order": ([call("a"), call("a"), output("a"), output("a")], {0: 2, 1: 3}),
    "one id again": ([call("a"), output("a"), call("a"), output("a")], {0: 1, 2: 3}),
    "a new burst gives the old one up": ([call("a"), USER, call("a"), output("a")], {2: 3}),
    "an output before its call": ([output("a"), call("a")], {1: 0}),
    "an early output that two calls could mean": ([output("a"), call("a"), call("a")], {}),
    "a second output": ([call("a"), output("a"), output("a")], {0: 1}),
    "no id, by type": ([SEARCH, call("a"), FOUND, output("a")], {0: 2, 1: 3}),
    "no id, too early": ([FOUND, SEARCH], {}),
    "a local shell, by its own id": (
        [{"type": "local_shell_call", "call_id": "a"}, {"type": "local_shell_call_output", "id": "a"}],
        {0: 1},
    ),
    "an unnamed call": ([call("a", " "), output("a")], {}),
    "by name": ([call("a"), call("b", "g"), output("a"), output(name="g")], {0: 2, 1: 3}),
    "by name, once the other has its output": ([call("a"), output("a"), call("b"), output(name="f")], {0: 1, 2: 3}),
    "by namespace": (
        [call("a", namespace="x"), call("b", namespace="y"), output(name="f", namespace="y"), output("a")],
        {0: 3, 1: 2},
    ),
    "the only open call needs no name": ([call("a"), output()], {0: 1}),
}


@pytest.mark.parametrize(("items", "pairs"), PAIRS.values(), ids=PAIRS.keys())
def test_each_call_finds_its_output(items: list[dict[str, Any]], pairs: dict[int, int]) -> None:
    assert pair_outputs(items) == pairs


@pytest.mark.parametrize("before", [[call("a"), call("b")], [call("a", "g")], []], ids=["two", "other", "none"])
def test_an_output_that_could_belong_to_no_or_several_calls_is_refused(before: list[dict[str, Any]]) -> None:
    with pytest.raises(RequestRefused, match=r"`input\[\d\]` has no `call_id`") as refused:
        pair_outputs([*before, output(name="f")])
    assert refused.value.param == f"input[{len(before)}].call_id"


def test_an_output_is_late_when_somebody_spoke_meanwhile() -> None:
    items = [call("a"), USER, output("a"), call("b"), output("b")]
    answers = pair_outputs(items)
    assert find_late_outputs(items, answers, {(None, "f")}) == {2: 0}
    assert find_late_outputs(items, answers, {("x", "f")}) == {}


@pytest.mark.parametrize(("item", "unnamed"), [(call("a", ""), True), (call("a"), False), (SEARCH, False)])
def test_only_calls_that_need_a_name_can_lack_one(item: dict[str, Any], unnamed: bool) -> None:
    assert is_unnamed(item) is unnamed
