from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.contract.extract import find_json, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
CONTAINERS = st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=4), VALUES, max_size=3)
PROSE = st.text('abc {}[]":,`\n', max_size=40)


def found(text: str) -> list[list[str]]:
    return [[candidate.text for candidate in group] for group in find_json(text)]


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("just words", [], id="words"),
        pytest.param(' {"a": 1}\n', [['{"a": 1}']], id="the whole text"),
        pytest.param("42", [["42"]], id="a scalar"),
        pytest.param('"{\\"a\\": 1}"', [['"{\\"a\\": 1}"'], ['{"a": 1}']], id="encoded twice"),
        pytest.param('```json\n{"a": 1}\n```', [['{"a": 1}'], ['{"a": 1}']], id="a fence"),
        pytest.param('Sure:\n\n```\n[1]\n```\nDone.', [["[1]"], ["[1]"]], id="a fence in prose"),
        pytest.param('```json\n{"a": 1}', [['{"a": 1}'], ['{"a": 1}']], id="a fence that never closes"),
        pytest.param('```json {"a": 1}```', [['{"a": 1}']], id="a fence on one line"),
        pytest.param('Here: {"a": {"b": [1]}} ok?', [['{"a": {"b": [1]}}']], id="in prose, outermost only"),
        pytest.param('{"a": 1} {"a": 2}', [['{"a": 1}', '{"a": 2}']], id="two in a row"),
        pytest.param('a {curly} thing {"a": 1}', [['{"a": 1}']], id="braces that are none"),
        pytest.param('open { {"a": 1}', [['{"a": 1}']], id="a brace that never closes"),
        pytest.param('["cut', [], id="cut off"),
        pytest.param('{"a": "```\\n"}', [['{"a": "```\\n"}']], id="a fence inside a string"),
        pytest.param("\ufeff{}", [["{}"]], id="a byte order mark"),
        pytest.param("NaN", [], id="NaN is not JSON"),
        pytest.param('x [Infinity] {"a": 1}', [['{"a": 1}']], id="infinity is not JSON"),
        pytest.param('[NaN] {"a": 1}', [['{"a": 1}']], id="after a bad constant"),
    ],
)  # fmt: skip
def test_where_json_is_found(text: str, groups: list[list[str]]) -> None:
    assert found(text) == groups


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "1e999", "-1e999", "1" + "0" * 400])
def test_a_number_beyond_the_machine_is_read(text: str) -> None:
    candidate = parse_json(text)
    assert candidate is not None
    assert candidate.text == text
    assert candidate.value == candidate.value  # not NaN
    assert abs(candidate.value) > 10**300


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_any_json_text_is_found_whole(value: Any) -> None:
    candidate = parse_json(json.dumps(value))
    assert candidate is not None
    assert candidate.value == value


@given(CONTAINERS, st.sampled_from(["", "Here it is:\n", "Sure! "]), st.sampled_from(["", "\nDone.", " ok"]))
@settings(max_examples=200, deadline=None)
def test_a_container_is_found_in_prose_and_in_fences(value: Any, before: str, after: str) -> None:
    text = json.dumps(value)
    assert found(f"{before}{text}{after}")[0] == [text]
    assert found(f"{before}\n```json\n{text}\n```\n{after}")[0] == [text]


@given(PROSE, CONTAINERS, PROSE)
@settings(max_examples=300, deadline=None)
def test_what_is_found_is_always_json_and_always_from_the_text(before: str, value: Any, after: str) -> None:
    text = before + json.dumps(value) + after
    for group in find_json(text):
        for candidate in group:
            assert json.loads(candidate.text) == candidate.value
            assert candidate.text in text


HOSTILE = {
    "open brackets": "[",
    "open objects": '{"a":',
    "flat lists": "[" + "1," * 50,
    "half keys": '{"',
    "fences": "```\n",
    "braces": "{ ",
    "constants": "[NaN,",
    "cut words": "[tru",
    "many values": "[1] ",
    "nested": '[{"a":"b"},',
    "digits": "9",
    "spaces": "{" + " " * 1000,
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    started = time.thread_time()
    list(find_json(text))
    assert time.thread_time() - started < 10  # some 0.1 s; the square of the length would take minutes
