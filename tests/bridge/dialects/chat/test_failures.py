"""What a provider's error says: its status first, its own code next, its words last."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.dialects.chat.failures import classify, read_error, upstream_failure
from isthmus.errors import FAILURES

FAILED = [
    (429, "slow down", "rate_limit_exceeded"),
    (400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
    (400, "bad field", "invalid_prompt"),
    (402, "pay", "insufficient_quota"),
    (404, "no such model", "model_not_found"),
    (400, "Model Not Exist", "model_not_found"),
    (400, "Invalid model: mistral-huge", "model_not_found"),
    (400, "acme/none is not a valid model ID", "model_not_found"),
    (400, "the schema has an invalid model: x", "invalid_prompt"),
    (413, "too large", "context_length_exceeded"),
    (429, "You exceeded your current quota: insufficient_quota", "insufficient_quota"),
    (500, "oops", "server_error"),
    (503, "busy", "server_is_overloaded"),
    (529, "overloaded", "server_is_overloaded"),
]


@pytest.mark.parametrize(("status", "words", "code"), FAILED)
def test_upstream_statuses_keep_their_meaning(status: int, words: str, code: str) -> None:
    assert classify(words, status) == code
    error = upstream_failure(status, json.dumps({"error": {"message": words}}).encode(), provider="p", retry_after=2)
    assert (error.code, error.message, error.status, error.retry_after) == (code, words, status, 2)


@pytest.mark.parametrize("status", [400, 404, 415, 422])
@pytest.mark.parametrize(
    "words",
    [
        "property 'capacity' has unknown type",
        "unknown field `rate_limit`",
        "property 'overloaded' must be a boolean",
        "too many requests in `batch`: at most 5",
        "`quota exceeded` is not a valid enum value",
        "property 'context_length' has unknown type",
    ],
)
def test_a_4xx_outranks_the_words_in_its_body(status: int, words: str) -> None:
    failure = upstream_failure(status, json.dumps({"error": {"message": words}}).encode(), provider="p")
    assert failure.code in ("invalid_prompt", "model_not_found")
    assert not failure.retryable
    inside = read_error({"message": words, "code": status})
    assert not FAILURES[inside.code].retry


def test_a_retrying_code_in_a_4xx_body_does_not_make_it_pass() -> None:
    body = json.dumps({"error": {"message": "x", "code": "rate_limit_exceeded"}}).encode()
    assert upstream_failure(400, body, provider="p").code == "invalid_prompt"
    assert upstream_failure(500, body, provider="p").code == "rate_limit_exceeded"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("rate limit reached, try again in 1s", "rate_limit_exceeded"),
        ("Overloaded", "server_is_overloaded"),
        ("at capacity, please wait", "server_is_overloaded"),
        ("insufficient balance", "insufficient_quota"),
        ("boom", "server_error"),
    ],
)
def test_where_no_status_speaks_words_do(words: str, code: str) -> None:
    assert read_error({"message": words}).code == code
    assert classify(words, 500) == code


@pytest.mark.parametrize(
    "words",
    [
        "the request exceeds the available context size, try increasing it",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "Your request exceeded model token limit: 8192",
        "Range of input length should be [1, 129024]",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        "the model is loaded with context length of only 4096 tokens, which is not enough",
        "Input length exceeds context_length of model",
    ],
)
@pytest.mark.parametrize("status", [400, 422, 500, None])
def test_an_overlong_prompt_is_known_by_its_words(words: str, status: int | None) -> None:
    assert classify(words, status) == "context_length_exceeded"


def test_tokens_per_minute_are_not_an_overlong_prompt() -> None:
    assert classify("Too many tokens, please wait before trying again.", 429) == "rate_limit_exceeded"


def gemini(*quotas: str, delay: str | None = "11.102306822s", limit: str = "15") -> bytes:
    details: list[dict[str, Any]] = [
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": each} for each in quotas]}
    ]
    if delay is not None:
        details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay})
    message = (
        "You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: "
        f"generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: {limit}, model: gemini-3-pro"
    )
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details}
    return json.dumps([{"error": error}]).encode()


MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
TOKENS = "GenerateContentInputTokensPerModelPerMinute-FreeTier"
DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"


@pytest.mark.parametrize(
    ("body", "code", "wait"),
    [
        (gemini(MINUTE), "rate_limit_exceeded", 11.102306822),
        (gemini(MINUTE, TOKENS, delay="38s"), "rate_limit_exceeded", 38),
        (gemini(MINUTE, delay=None), "rate_limit_exceeded", None),
        (gemini(DAY), "insufficient_quota", None),
        (gemini(MINUTE, DAY), "insufficient_quota", None),
        (gemini(MINUTE, limit="0"), "insufficient_quota", None),
        (gemini(), "insufficient_quota", None),
    ],
    ids=["minute", "minute and tokens", "no delay", "day", "minute and day", "no free tier", "unnamed"],
)
def test_a_quota_by_the_minute_is_a_rate_limit_with_its_delay(body: bytes, code: str, wait: float | None) -> None:
    failure = upstream_failure(429, body, provider="gemini")
    assert (failure.code, failure.retry_after) == (code, wait)


def test_the_header_outranks_the_delay_in_the_body() -> None:
    assert upstream_failure(429, gemini(MINUTE), provider="gemini", retry_after=3).retry_after == 3


@pytest.mark.parametrize("delay", ["", "soon", "-5s", "1e308s", "9" * 40 + "s"])
def test_a_delay_that_is_none_is_not_believed(delay: str) -> None:
    assert upstream_failure(429, gemini(MINUTE, delay=delay), provider="gemini").retry_after is None


@pytest.mark.parametrize(
    "words",
    [
        "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
        'Failed to parse messages: Unsupported content part type: "image_url"',
        "tools param requires --jinja flag",
    ],
)
def test_a_500_that_calls_the_request_wrong_is_not_tried_again(words: str) -> None:
    failure = upstream_failure(500, json.dumps({"error": {"message": words}}).encode(), provider="p")
    assert (failure.code, failure.message) == ("invalid_prompt", words)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_our_configuration_and_is_never_repeated(status: int) -> None:
    error = upstream_failure(status, b'{"error": {"message": "Invalid key sk-secret-123"}}', provider="mine")
    assert "sk-secret" not in error.message
    assert "providers.mine.api_key" in error.message


@pytest.mark.parametrize("body", [b"", b"<html>502</html>", b"[]", b"3", b'{"error": null}', b'{"detail": "x"}'])
def test_an_unreadable_error_body_still_gives_a_message(body: bytes) -> None:
    assert upstream_failure(502, body, provider="p").message
