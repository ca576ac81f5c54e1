from __future__ import annotations

import pytest

from demo_requests import WEATHER, request
from isthmus.demo.choose import Call
from isthmus.demo.question import read_question
from isthmus.demo.thoughts import think

CALLS = [Call("get_weather", '{"city":"Paris"}')]


def test_more_effort_more_thoughts_and_none_without() -> None:
    efforts = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    asked = [read_question(request("hi", reasoning_effort=effort)) for effort in efforts]
    lengths = [len(think(question, [], always=False)) for question in asked]
    assert lengths[0] == 0
    assert lengths == sorted(set(lengths))
    assert think(read_question(request("hi")), [], always=False) == ""


@pytest.mark.parametrize("effort", [None, "none"])
def test_a_model_that_always_thinks_cannot_be_kept_from_it(effort: str | None) -> None:
    assert think(read_question(request("hi", reasoning_effort=effort)), [], always=True)


def test_it_thinks_of_this_very_request() -> None:
    question = read_question(request("What is the weather in Paris?", WEATHER, reasoning_effort="high"))
    assert "The user wrote 6 words: “What is the weather in Paris?”." in think(question, [], always=False)
    assert 'The tool get_weather fits; call it with {"city":"Paris"}.' in think(question, CALLS, always=False)
    assert "None of the 1 tools" in think(question, [], always=False)
