"""Upstream errors → codes that Responses clients understand.

Codex and the SDKs act on a handful of codes: some are final (`context_length_exceeded`,
`insufficient_quota`), some are retried (`rate_limit_exceeded` with "try again in Ns", `server_error`).
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from isthmus.bridge.deltas import Failed
from isthmus.errors import UpstreamFailed
from isthmus.protocol.json import JsonObject
from isthmus.scrub import Scrub, unscrubbed

_CONTEXT: Final = re.compile(
    r"context.{0,3}(length|window|size)|maximum context|too many (input )?tokens|(prompt|input).{0,20}too long"
    r"|exceed.{0,40}(context|max_model_len|n_ctx)",
    re.IGNORECASE,
)
_QUOTA: Final = re.compile(
    r"insufficient.{0,3}(quota|balance|credit)|quota.{0,12}exceeded|out of credit", re.IGNORECASE
)
_RATE: Final = re.compile(r"rate.?limit|too many requests|throttl", re.IGNORECASE)
_READ: Final = 8 * 1024
"""So much of an error's text is looked at; what is cut off here is never shown."""
_SHOWN: Final = 2000
_EXCERPT: Final = 120
_OVERLOAD: Final = re.compile(r"overload|server.?busy|capacity", re.IGNORECASE)


def read_error(error: Any, scrub: Scrub = unscrubbed) -> Failed:
    """An error object (or text) inside a reply or stream; `scrub` takes our secrets out of its words."""
    message, words, status = _words(error, scrub)
    return Failed(message or "the upstream reported an error", classify(words, status))


def upstream_failure(
    status: int, body: bytes, *, provider: str, retry_after: float | None = None, scrub: Scrub = unscrubbed
) -> UpstreamFailed:
    """A non-2xx answer as our typed error. 401 and 403 are about our key: its text is never repeated."""
    error = _error_of(body)
    message, words, _ = _words(error, scrub)
    code = classify(words, status)
    if status in (401, 403):
        code = "upstream_unauthorized"
        message = f"provider `{provider}` refused our credentials (HTTP {status}); check `providers.{provider}.api_key`"
    elif not message:
        message = f"provider `{provider}` answered HTTP {status}"
    return UpstreamFailed(message, code=code, status=status, retry_after=retry_after, metadata={"provider": provider})


def classify(words: str, status: int | None) -> str:
    """The code that says what a client can do about it."""
    if _CONTEXT.search(words) or status == 413:
        return "context_length_exceeded"
    if _QUOTA.search(words) or status == 402:
        return "insufficient_quota"
    if status == 429 or _RATE.search(words):
        return "rate_limit_exceeded"
    if status in (503, 529) or _OVERLOAD.search(words):
        return "server_is_overloaded"
    if status == 404:
        return "model_not_found"
    if status in (400, 422):
        return "invalid_prompt"
    return "server_error"


def _error_of(body: bytes) -> Any:
    try:
        decoded = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if isinstance(decoded, list) and decoded:
        decoded = decoded[0]
    if isinstance(decoded, dict):
        return decoded.get("error", decoded)
    return decoded


def excerpt(data: bytes, scrub: Scrub) -> str:
    """The beginning of bytes that nobody can read. Scrubbed first: a cut would hide a key from the scrubber."""
    return repr(scrub(data[:_READ].decode("utf-8", "backslashreplace"))[:_EXCERPT])


def _words(error: Any, scrub: Scrub) -> tuple[str, str, int | None]:
    """A message to show, all words to classify by, and a status if the vendor put one inside."""
    if isinstance(error, str):
        message = scrub(error[:_READ])[:_SHOWN]
        return message, message, None
    if not isinstance(error, dict):
        return "", "", None
    message = scrub(_message(error)[:_READ])
    code = error.get("code")
    words = " ".join(str(part) for part in (message, code, error.get("type")) if part is not None)[:4000]
    status = code if isinstance(code, int) and 400 <= code < 600 else None
    return message[:_SHOWN], words, status


def _message(error: JsonObject) -> str:
    for field in ("message", "msg", "detail", "error"):
        value = error.get(field)
        if isinstance(value, str) and value:
            return value
    return ""
