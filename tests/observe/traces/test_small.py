"""What is made at once: only what is surely small."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.observe.traces.small import SMALL, is_small_end, is_small_plan, is_small_request
from isthmus.ports import Ended, Planned, Received
from isthmus.testing.fold import plan_for

PLAN = plan_for()
LONG = "x" * (SMALL + 1)


def ended(*output: dict[str, Any]) -> Ended:
    response = {"output": list(output)}
    cost = PLAN.target.capabilities.cost
    return Ended("r", "o", "p", "m", 1, "completed", None, None, cost, 1.0, None, 0, 0, response=response)


def message(**part: Any) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": "Rome", "annotations": [], **part}]}


def test_a_request_is_small_up_to_its_bound() -> None:
    def small(size: int) -> bool:
        return is_small_request(Received("r", "o", "k", "", "POST", "/v1/responses", size, 0.0))

    assert small(SMALL)
    assert not small(SMALL + 1)


def test_what_continues_a_history_is_not() -> None:
    assert is_small_plan(Planned("r", "q", "o", PLAN, {}))
    assert not is_small_plan(Planned("r", "q", "o", PLAN, {}, history=1))


def test_an_ordinary_answer_and_none_at_all_are_small() -> None:
    assert is_small_end(ended(message()))
    assert is_small_end(ended())
    cost = PLAN.target.capabilities.cost
    assert is_small_end(Ended("r", "o", "p", "m", 1, "failed", None, None, cost, 1.0, None, 0, 0))


@pytest.mark.parametrize(
    "output",
    [
        [message(text=LONG)],
        [message(text="x" * 6_000)] * 3,
        [message(annotations=[{"type": "url_citation"}] * 100)],
        [message(logprobs=[{"token": "x"}] * 5_000)],
        [{"type": "function_call", "arguments": LONG}],
        [{"type": "image_generation_call", "result": LONG}],
        [{"type": "reasoning", "summary": [{"type": "summary_text", "text": LONG}]}],
        [{"type": "odd", "parts": [LONG]}],
    ],
)
def test_a_long_answer_is_not_wherever_its_length_lies(output: list[dict[str, Any]]) -> None:
    assert not is_small_end(ended(*output))
