from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.contract.check import (
    ContractCheck,
    applies_to,
    contract_failure,
    find_json,
    parse_json,
    repair_request,
    validate_output_contract,
)
from isthmus.bridge.types.plan import NO_CONTRACT, OutputContract
from isthmus.errors import BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT, UpstreamFailed

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def strict(schema: dict[str, Any] | bool = CITY, mode: Any = "json_object") -> OutputContract:
    return OutputContract(
        "json_schema", mode, schema=schema, strict=True, requires_valid_json=True, held=mode != "native", name="city"
    )


JSON_MODE = OutputContract("json_object", "native", {"type": "json_object"})


@pytest.mark.parametrize("mode", ["native", "json_object", "prompt"])
def test_seed_row_pass_valid_json_is_returned_as_it_is(mode: str) -> None:
    text = '{"city": "Ulm"}'
    assert validate_output_contract(strict(mode=mode), text) == ContractCheck(True, text)


@pytest.mark.parametrize("mode", ["native", "json_object", "prompt"])
def test_seed_row_fail_names_provider_model_and_response(mode: str) -> None:
    contract = strict(mode=mode)
    check = validate_output_contract(contract, "not JSON at all")
    assert not check.valid
    failure = contract_failure(contract, check, provider="acme", model="acme-1", response_id="resp_1")
    assert isinstance(failure, UpstreamFailed)
    assert failure.code == BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT
    assert failure.metadata["provider"] == "acme"
    assert failure.metadata["model"] == "acme-1"
    assert failure.metadata["response_id"] == "resp_1"
    assert failure.metadata["errors"] == list(check.errors)
    assert "`city`" in failure.message


@pytest.mark.parametrize(
    ("text", "valid", "cleaned", "result"),
    [
        pytest.param('{"city": "Ulm"}', True, False, None, id="as asked"),
        pytest.param(' \n{"city": "Ulm"}\n', True, False, None, id="white space is no fault"),
        pytest.param('```json\n{"city": "Ulm"}\n```', True, True, '{"city": "Ulm"}', id="fenced"),
        pytest.param('Here you are: {"city": "Ulm"}.', True, True, '{"city": "Ulm"}', id="in prose"),
        pytest.param('As in [1]: {"city": "Ulm"}', True, True, '{"city": "Ulm"}', id="a candidate that fits"),
        pytest.param('"{\\"city\\": \\"Ulm\\"}"', True, True, '{"city": "Ulm"}', id="encoded twice"),
        pytest.param('Ex.: {"city":"A"} but {"city": "Ulm"}', True, True, '{"city": "Ulm"}', id="the longest"),
        pytest.param(
            '{"city":"Neu-Ulm"}\n```\n{"city": "Ulm"}\n```', True, True, '{"city": "Ulm"}', id="a fence before prose"
        ),
        pytest.param('{"city": 7}', False, False, None, id="wrong type"),
        pytest.param("{}", False, False, None, id="missing property"),
        pytest.param('{"city": "Ulm", "x": 1}', False, False, None, id="forbidden property"),
        pytest.param('"Ulm"', False, False, None, id="a scalar"),
        pytest.param('{"city": "Ul', False, False, None, id="cut off"),
        pytest.param("", False, False, None, id="empty"),
        pytest.param("null", False, False, None, id="null"),
        pytest.param('{"city": "\\ud800"}', False, False, None, id="half a character"),
        pytest.param('{"city": "\\ud83d\\ude00"}', True, False, None, id="a whole character in two escapes"),
        pytest.param('{"city": "\ud800"}', False, False, None, id="half a character, raw"),
        pytest.param('{"city": "Ulm", "people": NaN}', False, False, None, id="NaN"),
        pytest.param('{"city": "Ulm", "people": ' + "9" * 5000 + "}", True, False, None, id="a huge number"),
        pytest.param('{"city": "Ulm", "people": 1e400}', True, False, None, id="a huge whole number"),
        pytest.param('{"city": "Ulm", "people": 1.5}', False, False, None, id="not whole"),
    ],
)
def test_an_answer_is_checked_against_the_real_schema(
    text: str, valid: bool, cleaned: bool, result: str | None
) -> None:
    check = validate_output_contract(strict(), text)
    assert (check.valid, check.cleaned, check.text) == (valid, cleaned, text if result is None else result)
    assert bool(check.errors) is not valid


@pytest.mark.parametrize(
    ("text", "valid"), [("{}", True), ('```\n{"a": 1}\n```', True), ("[1]", False), ("7", False), ("words", False)]
)
def test_json_mode_asks_for_an_object(text: str, valid: bool) -> None:
    assert validate_output_contract(JSON_MODE, text).valid is valid


def test_without_a_contract_anything_goes() -> None:
    assert validate_output_contract(NO_CONTRACT, "words") == ContractCheck(True, "words")


@pytest.mark.parametrize("text", ["1", "null", '"x"', "[]"])
def test_boolean_schemas(text: str) -> None:
    assert validate_output_contract(strict(True), text).valid
    assert not validate_output_contract(strict(False), text).valid


def test_errors_name_the_place_and_stay_short() -> None:
    schema = {"properties": {"a/b": {"items": {"type": "integer"}}}}
    check = validate_output_contract(strict(schema), '{"a/b": [' + ",".join(['"' + "x" * 5000 + '"'] * 50) + "]}")
    assert len(check.errors) == 5
    assert check.errors[0].startswith("at `/a~1b/0`: ")
    assert check.errors[0].endswith('is not of type "integer"')
    assert all(len(error) < 400 for error in check.errors)


def test_the_faults_told_are_those_of_the_likeliest_candidate() -> None:
    check = validate_output_contract(strict(), 'See [1].\n```json\n{"city": 7}\n```')
    assert check.errors == ('at `/city`: 7 is not of type "string"',)


def test_the_model_is_told_what_was_wrong() -> None:
    check = validate_output_contract(strict(), '{"city": 7}')
    words = repair_request(strict(), check)
    assert check.errors[0] in words
    assert "JSON" in words


@pytest.mark.parametrize(
    ("contract", "status", "has_calls", "refused", "applies"),
    [
        pytest.param(strict(), "completed", False, False, True, id="a final answer"),
        pytest.param(JSON_MODE, "completed", False, False, True, id="a final answer in JSON mode"),
        pytest.param(strict(), "completed", True, False, False, id="a turn with tool calls"),
        pytest.param(strict(), "completed", False, True, False, id="a refusal"),
        pytest.param(strict(), "incomplete", False, False, False, id="cut off"),
        pytest.param(strict(), "failed", False, False, False, id="failed"),
        pytest.param(NO_CONTRACT, "completed", False, False, False, id="no contract"),
    ],
)
def test_only_final_answers_are_checked(
    contract: OutputContract, status: str, has_calls: bool, refused: bool, applies: bool
) -> None:
    assert applies_to(contract, status, has_calls, refused) is applies


@given(st.text(max_size=60) | st.text('{}[]":,123`\n cityUlm', max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_gets_an_answer_and_a_cleaned_one_is_valid_by_itself(text: str) -> None:
    check = validate_output_contract(strict(), text)
    assert check.valid or check.errors
    if check.cleaned:
        again = validate_output_contract(strict(), check.text)
        assert again == ContractCheck(True, check.text)
    else:
        assert check.text == text


# -- JSON amid other text --

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
