"""The one table of failures: every code has a meaning, and every decision elsewhere is read off it."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.errors import (
    BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT,
    FAILURES,
    ConfigError,
    ContextTooLong,
    CredentialsRefused,
    IsthmusError,
    ModelNotFound,
    OutputInvalid,
    Overloaded,
    PromptRefused,
    QuotaSpent,
    RateLimited,
    RequestRefused,
    UpstreamBusy,
    UpstreamFailed,
    UpstreamMalformed,
    UpstreamTimedOut,
    UpstreamUnreachable,
    code_of_status,
    specify,
)

KINDS = (
    OutputInvalid,
    CredentialsRefused,
    ModelNotFound,
    PromptRefused,
    ContextTooLong,
    QuotaSpent,
    RateLimited,
    Overloaded,
    UpstreamTimedOut,
    UpstreamUnreachable,
    UpstreamMalformed,
    UpstreamBusy,
    UpstreamFailed,
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_failure_is_a_row_and_knows_what_the_row_says(kind: type[UpstreamFailed]) -> None:
    meaning = FAILURES[kind.default_code]
    assert meaning.turn == ("operator" if kind is UpstreamBusy else "provider")
    assert kind("x").meaning is meaning
    assert kind("x").retryable is meaning.retry


@pytest.mark.parametrize("code", FAILURES)
def test_what_is_final_is_not_tried_again_here(code: str) -> None:
    meaning = FAILURES[code]
    assert not (meaning.final and meaning.retry)
    assert not (meaning.retry and meaning.turn == "caller")
    assert meaning.elsewhere or not meaning.retry, "what may pass here may be over elsewhere"
    assert 400 <= meaning.status < 600


def test_an_upstream_status_stands_for_one_code() -> None:
    statuses = [status for meaning in FAILURES.values() for status in meaning.upstream]
    assert len(statuses) == len(set(statuses))


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_prompt"),
        (401, "upstream_unauthorized"),
        (402, "insufficient_quota"),
        (403, "upstream_unauthorized"),
        (404, "model_not_found"),
        (408, "upstream_timeout"),
        (409, "rate_limit_exceeded"),
        (413, "context_length_exceeded"),
        (415, "invalid_prompt"),
        (422, "invalid_prompt"),
        (429, "rate_limit_exceeded"),
        (302, "server_error"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "server_is_overloaded"),
        (504, "upstream_timeout"),
        (529, "server_is_overloaded"),
        (None, "server_error"),
    ],
)
def test_a_bare_status_says_what_it_can(status: int | None, code: str) -> None:
    assert code_of_status(status) == code


def test_a_4xx_is_never_tried_again_unless_it_asks_for_patience() -> None:
    passing = {status for status in range(400, 500) if FAILURES[code_of_status(status)].retry}
    assert passing == {408, 409, 429}


def test_a_code_of_a_vendors_own_means_what_its_status_means() -> None:
    assert UpstreamFailed("x", code="odd_one", status=418).meaning is FAILURES["invalid_prompt"]
    assert UpstreamFailed("x", code="odd_one", status=503).retryable
    assert UpstreamFailed("x", code="odd_one").meaning is FAILURES["server_error"]


@pytest.mark.parametrize("code", ["insufficient_quota", "rate_limit_exceeded", "model_not_found"])
def test_what_we_refuse_ourselves_with_a_providers_code_is_the_callers_turn(code: str) -> None:
    ours, theirs = RequestRefused("x", code=code), UpstreamFailed("x", code=code)
    assert (ours.meaning.turn, theirs.meaning.turn) == ("caller", "provider")
    assert replace(ours.meaning, turn="provider") == theirs.meaning, "to a client it is the same"


def test_errors_without_a_row_still_say_whose_turn_it_is() -> None:
    assert RequestRefused("x", code="anything").meaning.turn == "caller"
    assert (RequestRefused("x").meaning.status, RequestRefused("x").retryable) == (400, False)
    assert ConfigError("x").meaning.turn == "operator"
    assert IsthmusError("x").meaning.status == 500


def test_a_failure_becomes_the_kind_of_its_code_before_that_of_its_status() -> None:
    assert type(specify(UpstreamFailed("x", code="context_length_exceeded", status=400))) is ContextTooLong
    assert type(specify(UpstreamFailed("x", code="insufficient_quota", status=429))) is QuotaSpent
    assert type(specify(UpstreamFailed("x", status=429))) is RateLimited
    foreign = specify(UpstreamFailed("x", code="odd_one", status=401), "mine")
    assert (type(foreign), foreign.code, foreign.provider) == (CredentialsRefused, "odd_one", "mine")


DECIDING = {
    "upstream/retry.py": set(),
    "upstream/pool.py": set(),
    "client/retry.py": set(),
    "server/codex_client.py": set(),
    "server/errors.py": {
        "request_timeout",
        "head_too_large",
        "draining",
        "server_error",
        "server_is_overloaded",
        "not_found",
    },
}
"""Who decides on failures, and the codes that they may name: two close the connection, one is a type as well, the
others are made there."""


@pytest.mark.parametrize("room", DECIDING)
def test_who_decides_on_failures_reads_the_table_and_knows_no_codes(room: str) -> None:
    source = (Path(__file__).parents[1] / "src" / "isthmus" / room).read_text()
    constants = {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)}
    assert {said for said in constants if isinstance(said, str) and said in FAILURES} <= DECIDING[room]
    statuses = {said for said in constants if type(said) is int and 400 <= said < 600}
    # `type` of an error is made of its status; a 503 is a 529 where clients of Anthropic's API read it.
    assert statuses <= ({401, 404, 429, 500, 503, 529} if room == "server/errors.py" else set())


def test_a_broken_contract_is_final_for_codex_too() -> None:
    meaning = FAILURES[BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT]
    assert (meaning.final, meaning.codex) == (True, "as a refusal")


def test_a_message_tells_both_ends_of_what_is_too_long_to_quote() -> None:
    name = "a" * 20_000 + "z" * 20_000
    refused = RequestRefused(f"there is no model `{name}`; send another", param=name)
    assert len(refused.message) < 4_100
    assert refused.message.startswith("there is no model `aaa")
    assert refused.message.endswith("zzz`; send another")
    assert "characters …]" in refused.message
    assert refused.param is not None
    assert len(refused.param) < 4_100
    assert str(refused) == refused.message
