"""Usage, citations, searches and errors of Messages servers, in one shape."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.deltas import Usage
from isthmus.bridge.dialects.messages.reports import read_citation, read_failure, read_usage, web_search_call
from isthmus.scrub import unscrubbed


@pytest.mark.parametrize(
    ("given", "usage"),
    [
        ({}, None),
        ({"input_tokens": 0, "output_tokens": 0}, None),
        ({"input_tokens": "many", "output_tokens": 2}, Usage(0, 2, 2)),
        (
            {
                "input_tokens": 1,
                "cache_creation_input_tokens": 10,
                "cache_read_input_tokens": 100,
                "output_tokens": 5,
                "output_tokens_details": {"thinking_tokens": 3},
            },
            Usage(111, 5, 116, 100, 3, 10),
        ),
        ({"output_tokens": 5, "output_tokens_details": "x"}, Usage(0, 5, 5)),
    ],
)
def test_the_whole_input_is_what_three_counts_say(given: Any, usage: Usage | None) -> None:
    assert read_usage(given) == usage


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"type": "invalid_request_error", "message": "capacity: unknown property"}, "invalid_prompt"),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8"}, "context_length_exceeded"),
        ({"type": "authentication_error", "message": "x"}, "upstream_unauthorized"),
        ({"type": "billing_error", "message": "x"}, "insufficient_quota"),
        ({"type": "not_found_error", "message": "x"}, "model_not_found"),
        ({"type": "rate_limit_error", "message": "x"}, "rate_limit_exceeded"),
        ({"type": "api_error", "message": "x"}, "server_error"),
        ({"type": "timeout_error", "message": "x"}, "upstream_timeout"),
        ({"type": "overloaded_error", "message": "x"}, "server_is_overloaded"),
        ({"type": "novel_error", "message": "x"}, "server_error"),
        ("plain words", "server_error"),
    ],
)
def test_the_type_of_an_error_says_what_its_status_would(error: Any, code: str) -> None:
    assert read_failure(error, unscrubbed).code == code


def test_citations_are_of_the_web_or_of_a_file() -> None:
    web = read_citation({"type": "web_search_result_location", "url": "u", "title": "t"})
    assert web == {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 0}
    page = read_citation({"type": "page_location", "document_index": 2, "document_title": "a.pdf"})
    assert page == {"type": "file_citation", "file_id": "", "filename": "a.pdf", "index": 2}
    assert read_citation("odd") is None


def test_a_search_tells_its_query_and_sources_or_that_it_failed() -> None:
    asked = {"input": {"query": "q"}}
    found = web_search_call(asked, {"content": [{"type": "web_search_result", "url": "u"}]})
    assert (found["status"], found["action"]["query"]) == ("completed", "q")
    assert found["action"]["sources"] == [{"type": "url", "url": "u"}]
    failed = web_search_call({}, {"content": {"type": "web_search_tool_result_error", "error_code": "max_uses"}})
    assert (failed["status"], failed["action"]["sources"]) == ("failed", [])
