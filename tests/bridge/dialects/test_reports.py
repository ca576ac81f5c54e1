"""What vendors report beside their words, whatever they leave out of it."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.capabilities import ReplyRules
from isthmus.bridge.deltas import Usage
from isthmus.bridge.dialects.reports import (
    logprobs_of,
    read_annotations,
    read_citation,
    read_logprobs,
    read_phase,
    read_usage,
    seal,
)

CASES: dict[str, tuple[dict[str, Any], Usage]] = {
    "xAI: thinking beside the completion": (
        {
            "prompt_tokens": 12,
            "completion_tokens": 1,
            "total_tokens": 399,
            "completion_tokens_details": {"reasoning_tokens": 386},
        },
        Usage(12, 387, 399, reasoning_tokens=386),
    ),
    "Gemini: thinking in the total only": (
        {"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623},
        Usage(20, 603, 623),
    ),
    "OpenAI: thinking inside the completion": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 30,
            "total_tokens": 40,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        Usage(10, 30, 40, reasoning_tokens=20),
    ),
    "a Responses object": (
        {
            "input_tokens": 10,
            "output_tokens": 30,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens_details": {"reasoning_tokens": 20},
        },
        Usage(10, 30, 40, cached_tokens=4, reasoning_tokens=20),
    ),
    "a total below its parts": ({"prompt_tokens": 10, "completion_tokens": 30, "total_tokens": 3}, Usage(10, 30, 40)),
}


@pytest.mark.parametrize(("given", "read"), CASES.values(), ids=list(CASES))
def test_usage_adds_up(given: dict[str, Any], read: Usage) -> None:
    assert read_usage(given, ReplyRules()) == read


@pytest.mark.parametrize("given", [None, 7, [], {}, {"prompt_tokens": 0, "total_tokens": 0}, {"prompt_tokens": True}])
def test_what_is_no_usage_is_none(given: Any) -> None:
    assert read_usage(given, ReplyRules()) is None


def test_the_paths_of_the_models_data_come_first() -> None:
    given = {"prompt_tokens": 9, "hits": {"n": 3}, "input_tokens_details": {"cached_tokens": 1}}
    found = read_usage(given, ReplyRules(cached_tokens=["hits.n"]))
    assert found is not None
    assert found.cached_tokens == 3


def test_odd_log_probabilities_never_raise() -> None:
    assert read_logprobs(None) is None
    assert read_logprobs([1, {"token": "a", "top_logprobs": 3}]) == [
        {"token": "a", "bytes": [], "logprob": 0.0, "top_logprobs": []}
    ]


EMPTY = {"type": "url_citation", "url": "", "title": "", "start_index": 0, "end_index": 0}


def test_every_field_of_a_web_citation_is_there() -> None:
    assert read_citation({}) == EMPTY
    assert read_citation({"url": None, "start_index": -1, "end_index": "2", "more": 1}) == EMPTY
    assert read_citation({"url": "u", "title": "t", "end_index": 3}) == {
        **EMPTY,
        "url": "u",
        "title": "t",
        "end_index": 3,
    }


def test_other_citations_stay_what_they_are() -> None:
    file = {"type": "file_citation", "file_id": "f"}
    assert read_annotations([file, {"type": "url_citation"}, {"no": "type"}, 7]) == [file, EMPTY]
    assert read_annotations(None) == []


@pytest.mark.parametrize(("given", "read"), [("commentary", "commentary"), ("odd", None), (None, None), ([], None)])
def test_only_phases_that_clients_know_are_told(given: Any, read: str | None) -> None:
    assert read_phase(given) == read


def test_sealed_reasoning_is_what_the_vendor_takes_back_and_nothing_else() -> None:
    sealed = seal({"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "status": "completed"})
    assert sealed.key == "encrypted_content"
    assert sealed.value == [{"summary": [], "type": "reasoning", "id": "rs_1", "encrypted_content": "x"}]


@pytest.mark.parametrize(
    ("tokens", "text", "kept"),
    [
        (["<think>", "hm", "</think>", "\n\n", "Green", "."], "Green.", ["Green", "."]),
        (["Green", "."], "Green.", ["Green", "."]),
        (["hm", "\nGre", "en"], "Green", ["\nGre", "en"]),
        (["something", "else"], "Green", ["something", "else"]),
        (["Green", ""], "Green", ["Green", ""]),
        ([], "Green", []),
    ],
    ids=["thoughts before it", "the text alone", "a token of both", "another text", "an empty end", "none"],
)
def test_log_probabilities_of_the_text_are_those_at_the_end(tokens: list[str], text: str, kept: list[str]) -> None:
    given = read_logprobs([{"token": token, "logprob": -1.0} for token in tokens]) or []
    assert [entry["token"] for entry in logprobs_of(text, given)] == kept
