"""What a failure is called in Anthropic's API, and the words that its clients act upon.

Claude Code reads two sentences of a refusal: that the prompt is too long (it compacts the conversation, by the figures
in it), and that the answer it asks for does not fit behind the prompt (it asks for a shorter one). Seen with 2.1.325
on 2026-11-15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from isthmus.bridge.tokens import most_tokens
from isthmus.bridge.types.plan import Plan
from isthmus.errors import FAILURES, IsthmusError, RequestRefused

TOO_LONG: Final = "context_length_exceeded"
_KINDS: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_LEAST_ANSWER: Final = 1_000
"""Tokens that the client leaves free when it asks for a shorter answer."""
_FIGURE: Final = re.compile(r"\d[\d,_]{2,}")


def error_kind(status: int) -> str:
    """The type of an error by the status that it has, or would have."""
    return _KINDS.get(status) or ("invalid_request_error" if status < 500 else "api_error")


def kind_of_code(code: str) -> str:
    meaning = FAILURES.get(code)
    return error_kind(meaning.status) if meaning is not None else "api_error"


def say_too_long(error: IsthmusError, plan: Plan | None = None) -> IsthmusError:
    """An error about the length of a conversation, in the words that make a client shorten it; any other as it is."""
    if error.code != TOO_LONG:
        return error
    figures = [int(re.sub("[,_]", "", found)) for found in _FIGURE.findall(error.message)]
    window = plan.target.capabilities.limits.context if plan is not None else None
    tokens, most = error.metadata.get("tokens"), error.metadata.get("window") or window
    if tokens is None and len(figures) > 1:
        tokens = max(figures[:2])
        most = most if most in figures else min(figures[:2])
    most = most or (figures[0] if figures else None)
    if not most:
        return _refusal("prompt is too long", error)
    if plan is not None and (words := _answer_too_long(plan, most, tokens, figures)):
        return _refusal(words, error)
    return _refusal(f"prompt is too long: {max(tokens or 0, most + 1)} tokens > {most} maximum", error)


def _answer_too_long(plan: Plan, most: int, tokens: int | None, figures: list[int]) -> str:
    """Where the prompt alone would fit, and the answer that was asked for is what takes too much."""
    limit = plan.output_limit
    if limit is None:
        return ""
    # A server that names the limit beside the sum of both tells how long the prompt is.
    prompt = tokens - limit if tokens is not None and limit in figures else most_tokens(plan.body)
    if not 0 < prompt < most - _LEAST_ANSWER or prompt + limit <= most:
        return ""
    return f"input length and `max_tokens` exceed context limit: {prompt} + {limit} > {most}"


def _refusal(words: str, error: IsthmusError) -> RequestRefused:
    """Nothing stands behind the words: the client reads them up to their end."""
    facts = {**error.metadata, "said": error.message}
    return RequestRefused(words, code=TOO_LONG, param="messages", metadata=facts)
