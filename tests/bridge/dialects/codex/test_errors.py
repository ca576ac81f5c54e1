from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.dialects.codex.errors import (
    ERROR_CODES,
    LOGIN_MESSAGE,
    map_rpc_error,
    map_turn_error,
    read_incomplete,
)
from isthmus.errors import FAILURES


@pytest.mark.parametrize(
    ("info", "code", "status"),
    [
        ("contextWindowExceeded", "context_length_exceeded", None),
        ("usageLimitExceeded", "insufficient_quota", None),
        ("rateLimitExceeded", "rate_limit_exceeded", None),
        ("serverOverloaded", "server_is_overloaded", None),
        ("modelNotFound", "model_not_found", None),
        ("internalServerError", "server_error", None),
        ("unauthorized", "upstream_unauthorized", None),
        ("badRequest", "invalid_prompt", None),
        ("other", "server_error", None),
        ("somethingNew", "server_error", None),
        (None, "server_error", None),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "upstream_unauthorized", 401),
        ({"httpConnectionFailed": {"httpStatusCode": 404}}, "model_not_found", 404),
        ({"httpConnectionFailed": {"httpStatusCode": None}}, "server_error", None),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "rate_limit_exceeded", 429),
        ({"responseStreamDisconnected": {}}, "server_error", None),
    ],
    ids=str,
)
def test_codex_error_info_maps_to_a_code_that_clients_know(info: Any, code: str, status: int | None) -> None:
    failure = map_turn_error({"message": "m", "codexErrorInfo": info})
    assert (failure.code, failure.status) == (code, status)


def test_every_word_of_the_table_is_reachable() -> None:
    for name, code in ERROR_CODES.items():
        assert map_turn_error({"message": "m", "codexErrorInfo": name}).code == code
        assert code in FAILURES


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        ('{"error":{"message":"bad thing","code":"x"}}', "invalid_prompt", "bad thing"),
        ('{"error":{"message":"long","code":"context_length_exceeded"}}', "context_length_exceeded", "long"),
        ('{"detail":"x"}', "invalid_prompt", "x"),
        ("{broken", "server_error", "{broken"),
    ],
    ids=["openai", "known-code", "other-json", "no-json"],
)
def test_a_raw_400_body_in_the_message_is_read(body: str, code: str, message: str) -> None:
    failure = map_turn_error({"message": body, "codexErrorInfo": "other"})
    assert (failure.code, failure.message) == (code, message)


def test_a_status_that_is_only_in_the_words_is_read() -> None:
    failure = map_turn_error({"message": "unexpected status 503 Service Unavailable: x", "codexErrorInfo": "other"})
    assert (failure.code, failure.status) == ("server_is_overloaded", 503)


def test_a_needed_login_names_the_command_and_hides_the_upstreams_words() -> None:
    failure = map_turn_error({"message": "token sk-secret expired", "codexErrorInfo": "unauthorized"})
    assert failure.message == LOGIN_MESSAGE
    assert "`codex login`" in failure.message
    assert map_rpc_error("turn/start", "Not logged in").message == LOGIN_MESSAGE


@pytest.mark.parametrize(
    ("text", "seconds"), [("try again in 1.5s", 1.5), ("Please try again in 20ms.", 0.02), ("later", None)], ids=str
)
def test_a_retry_hint_is_kept(text: str, seconds: float | None) -> None:
    assert map_turn_error({"message": text, "codexErrorInfo": "rateLimitExceeded"}).retry_after == seconds


@pytest.mark.parametrize(
    ("reason", "finish"), [("max_output_tokens", "length"), ("content_filter", "content_filter"), ("odd", None)]
)
def test_an_incomplete_answer_is_a_finish_reason(reason: str, finish: str | None) -> None:
    assert read_incomplete({"message": f"Incomplete response returned, reason: {reason}"}) == finish


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Server overloaded; retry later.", "server_is_overloaded"),
        ("remote image URLs are not supported", "invalid_prompt"),
        ("dynamic tool name is reserved: mcp__x", "invalid_prompt"),
        ("thread not found", "server_error"),
    ],
)
def test_rpc_refusals_map_by_their_words(message: str, code: str) -> None:
    assert map_rpc_error("turn/start", message).code == code
