"""Jobs are the same work wherever they are done, and survive the way through a pipe."""

from __future__ import annotations

import json

import pytest

from isthmus.bridge.jobs import (
    Admission,
    AdmitSchema,
    CheckAnswer,
    Job,
    admission_of,
    decode_result,
    encode_job,
    give_up,
    refuse,
    run_encoded,
    run_job,
)
from isthmus.bridge.tools.examine import ExamineInput
from isthmus.bridge.types.plan import OutputContract
from isthmus.errors import RequestRefused

REGEX = {"type": "custom", "name": "dial", "format": {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}}
LARK = {"type": "custom", "name": "sum", "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "1"'}}
JOBS: list[Job] = [
    AdmitSchema('{"type":"object"}', 1_000_000),
    AdmitSchema('{"type":"objct"}', 1_000_000),
    CheckAnswer('{"type":"object"}', 1_000_000, 'Here: {"a": 1}'),
    CheckAnswer('{"type":"object"}', 1_000_000, '{"a": "\ud800"}'),
    CheckAnswer('{"maximum":10}', 1_000_000, "1" * 5000),
    ExamineInput(REGEX, "123"),
    ExamineInput(REGEX, "12\ud800"),
    ExamineInput({**LARK, "huge": 10**40}, "```\n1\n```"),
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: str(job)[:60])
def test_a_job_through_a_pipe_gives_what_it_gives_here(job: Job) -> None:
    assert decode_result(run_encoded(encode_job(job))) == run_job(job)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: str(job)[:60])
def test_a_job_that_nobody_finished_says_why(job: Job) -> None:
    assert "`checks.deadline`" in json.dumps(str(give_up(job, "over `checks.deadline`")))


def test_only_a_contract_with_a_schema_needs_admission() -> None:
    assert admission_of(OutputContract("json_object", "native")) is None
    assert admission_of(OutputContract(canonical=b"true", max_regex=5)) == AdmitSchema("true", 5)


def test_a_pattern_that_compiles_into_too_much_is_refused_with_its_setting() -> None:
    found = run_job(AdmitSchema(json.dumps({"pattern": r"^\pL{100}$"}), 1_000_000))
    assert isinstance(found, Admission)
    with pytest.raises(RequestRefused, match=r"`checks\.max_regex`") as refused:
        refuse(found)
    assert (refused.value.code, refused.value.param) == ("invalid_json_schema", "text.format.schema")


def test_look_around_in_patterns_is_understood_and_bounded() -> None:
    schema = json.dumps({"type": "string", "pattern": r"^(?=a)(a|aa)+\1$"})
    assert run_job(AdmitSchema(schema, 1_000_000)) == Admission()
    check = run_job(CheckAnswer(schema, 1_000_000, json.dumps("a" * 60 + "b")))
    assert not check.valid
