"""What failures are called, and the words that make a client shorten what it asks for."""

from __future__ import annotations

import re

import pytest

from isthmus.bridge.capabilities import ParameterRule, TokenLimits
from isthmus.bridge.doors.messages.failures import error_kind, kind_of_code, say_too_long
from isthmus.bridge.types.plan import Plan
from isthmus.errors import ContextTooLong, RequestRefused
from isthmus.testing.fold import plan_for

TOO_LONG = re.compile(r"prompt is too long: (\d+) tokens > (\d+) maximum")
BOTH = re.compile(r"input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "billing_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "overloaded_error"),
        (504, "timeout_error"),
    ],
)
def test_every_status_has_its_kind(status: int, kind: str) -> None:
    assert error_kind(status) == kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_is_overloaded", "overloaded_error"),
        ("rate_limit_exceeded", "rate_limit_error"),
        ("upstream_unauthorized", "permission_error"),
        ("server_error", "api_error"),
        ("a vendor's own", "api_error"),
    ],
)
def test_every_code_has_its_kind(code: str, kind: str) -> None:
    assert kind_of_code(code) == kind


def plan_with(window: int | None, limit: int | None = None) -> Plan:
    asked = {} if limit is None else {"max_output_tokens": limit}
    rules = {"max_output_tokens": ParameterRule()}
    return plan_for(asked, parameters=rules, limits=TokenLimits(context=window))


@pytest.mark.parametrize(
    ("words", "window", "told"),
    [
        ("maximum context length is 8192 tokens. However, your messages resulted in 9000.", None, (9000, 8192)),
        ("the prompt has 9,000 tokens, the limit is 8,192", None, (9000, 8192)),
        ("too long", 8192, (8193, 8192)),
        ("at most 4096 tokens", None, (4097, 4096)),
        ("130000 tokens were asked for", 128_000, (128_001, 128_000)),
    ],
)
def test_the_figures_are_those_that_somebody_knows(words: str, window: int | None, told: tuple[int, int]) -> None:
    error = say_too_long(ContextTooLong(words), plan_with(window))
    found = TOO_LONG.fullmatch(error.message)  # Claude Code reads it to its end
    assert found is not None, error.message
    assert (int(found[1]), int(found[2])) == told
    assert error.metadata["said"] == words
    assert error.meaning.status == 400


def test_without_any_figure_it_still_says_what_is_the_matter() -> None:
    assert say_too_long(ContextTooLong("no")).message == "prompt is too long"


def test_our_own_refusal_brings_its_figures() -> None:
    refused = RequestRefused("x", code="context_length_exceeded", metadata={"tokens": 70, "window": 50})
    assert "prompt is too long: 70 tokens > 50 maximum" in say_too_long(refused).message


def test_an_answer_that_does_not_fit_behind_the_prompt_is_told_apart() -> None:
    """The client then asks for a shorter answer, and does not compact for nothing."""
    words = "maximum context length is 8192 tokens, you asked for 8300 (300 in the messages, 8000 in the completion)"
    error = say_too_long(ContextTooLong(words), plan_with(8192, limit=8000))
    found = BOTH.fullmatch(error.message)
    assert found is not None, error.message
    assert tuple(map(int, found.groups())) == (300, 8000, 8192)
    estimated = BOTH.fullmatch(say_too_long(ContextTooLong("too long"), plan_with(8192, limit=8192)).message)
    assert estimated is not None
    assert 0 < 8192 - int(estimated[1]) - 1000 < 8192


def test_any_other_error_is_left_as_it_is() -> None:
    error = RequestRefused("x")
    assert say_too_long(error) is error
