"""Codex turn errors → codes that Responses clients know.

The one thing worth knowing: for a plain HTTP 400 Codex says only `other` and puts the raw body in the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from isthmus.bridge.deltas import Failed
from isthmus.bridge.dialects.chat.failures import told_wait, upstream_failure
from isthmus.errors import UpstreamFailed, code_of_status, specify
from isthmus.protocol.json import is_json

LOGIN_MESSAGE: Final = (
    "codex is not logged in, or its login has expired; run `codex login` as the user that runs the gateway "
    "(with the same `CODEX_HOME`), then try again"
)

ERROR_CODES: Final[Mapping[str, str]] = {
    "contextWindowExceeded": "context_length_exceeded",
    "sessionBudgetExceeded": "insufficient_quota",
    "usageLimitExceeded": "insufficient_quota",
    "rateLimitExceeded": "rate_limit_exceeded",
    "flexUnavailable": "server_is_overloaded",
    "serverOverloaded": "server_is_overloaded",
    "modelNotFound": "model_not_found",
    "cyberPolicy": "invalid_prompt",
    "misalignmentPolicyViolation": "invalid_prompt",
    "tooManyDenials": "invalid_prompt",
    "badRequest": "invalid_prompt",
    "unauthorized": "upstream_unauthorized",
}
"""Codex's words that say more than "it failed"; what the codes mean stands in `errors.FAILURES`."""


def map_turn_error(error: Mapping[str, Any] | None) -> UpstreamFailed:
    """A turn's error as one of ours. Text around a refused credential is never repeated."""
    error = error or {}
    message = str(error.get("message") or "the codex turn failed without a reason")
    name, status = _read_info(error.get("codexErrorInfo"), message)
    code = code_of_status(status) if status is not None else ERROR_CODES.get(name, "server_error")
    if name == "other" and status is None and message.lstrip().startswith("{") and is_json(message):
        read = upstream_failure(400, message.encode(), provider="codex")
        message, code, status = read.message, read.code, read.status
    if code == "upstream_unauthorized":
        message = LOGIN_MESSAGE
    shown, wait = message[:2000], told_wait(message)
    return UpstreamFailed(shown, code=code, status=status, retry_after=wait, metadata={"codex_error": name})


def failure_of(failed: Failed, provider: str) -> UpstreamFailed:
    """A leg that failed before it said anything: an error with a kind of its own."""
    return specify(UpstreamFailed(failed.message, code=failed.code, retry_after=told_wait(failed.message)), provider)


def map_rpc_error(method: str, message: str) -> UpstreamFailed:
    """A JSON-RPC refusal of one of our calls: the text is all there is (nearly every code is -32600)."""
    lowered = message.lower()
    if "not logged in" in lowered or "login" in lowered or "unauthorized" in lowered:
        return UpstreamFailed(LOGIN_MESSAGE, code="upstream_unauthorized")
    told = {"overloaded": "server_is_overloaded", "image": "invalid_prompt", "dynamic tool": "invalid_prompt"}
    code = next((code for word, code in told.items() if word in lowered), "server_error")
    return UpstreamFailed(f"codex refused `{method}`: {message[:1000]}", code=code)


def read_incomplete(error: Mapping[str, Any] | None) -> str | None:
    """The finish reason behind an answer that the upstream cut short; Codex reports it as an error."""
    found = re.search(r"incomplete response returned, reason: (\w+)", str((error or {}).get("message")), re.IGNORECASE)
    return {"max_output_tokens": "length", "content_filter": "content_filter"}.get(found[1]) if found else None


def _read_info(info: Any, message: str) -> tuple[str, int | None]:
    """`codexErrorInfo` is a word, or an object with one key and perhaps the upstream's status; binaries before 0.160
    put the status into the message only."""
    name, status = info if isinstance(info, str) else "other", None
    if isinstance(info, Mapping) and len(info) == 1:
        ((name, detail),) = info.items()
        status = detail.get("httpStatusCode") if isinstance(detail, Mapping) else None
    if isinstance(status, int) and status:
        return name, status
    found = re.match(r"unexpected status (\d{3})\b", message)
    return name, int(found[1]) if found else None
