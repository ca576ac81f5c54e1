"""Codex turn errors → codes that Responses clients know, and the status class a server would answer with.

In: `TurnError` objects (`message`, `codexErrorInfo`) and JSON-RPC refusals. Out: `UpstreamFailed`. The
one thing worth knowing: for a plain HTTP 400 Codex says only `other` and puts the raw body in the message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from isthmus.bridge.deltas import Failed
from isthmus.errors import UpstreamFailed, specify

LOGIN_MESSAGE: Final = (
    "codex is not logged in, or its login has expired; run `codex login` as the user that runs the gateway "
    "(with the same `CODEX_HOME`), then try again"
)


@dataclass(frozen=True, slots=True)
class ErrorClass:
    code: str
    status: int


_LOGIN: Final = ErrorClass("upstream_unauthorized", 401)
_SERVER: Final = ErrorClass("server_error", 502)

ERROR_TABLE: Final[Mapping[str, ErrorClass]] = {
    "contextWindowExceeded": ErrorClass("context_length_exceeded", 400),
    "sessionBudgetExceeded": ErrorClass("insufficient_quota", 429),
    "usageLimitExceeded": ErrorClass("insufficient_quota", 429),
    "rateLimitExceeded": ErrorClass("rate_limit_exceeded", 429),
    "flexUnavailable": ErrorClass("server_is_overloaded", 503),
    "serverOverloaded": ErrorClass("server_is_overloaded", 503),
    "modelNotFound": ErrorClass("model_not_found", 404),
    "cyberPolicy": ErrorClass("invalid_prompt", 400),
    "misalignmentPolicyViolation": ErrorClass("invalid_prompt", 400),
    "tooManyDenials": ErrorClass("invalid_prompt", 400),
    "badRequest": ErrorClass("invalid_prompt", 400),
    "unauthorized": _LOGIN,
    "internalServerError": ErrorClass("server_error", 500),
    "sandboxError": ErrorClass("server_error", 500),
    "threadRollbackFailed": ErrorClass("server_error", 500),
    "activeTurnNotSteerable": ErrorClass("server_error", 409),
    "httpConnectionFailed": _SERVER,
    "responseStreamConnectionFailed": _SERVER,
    "responseStreamDisconnected": _SERVER,
    "responseTooManyFailedAttempts": _SERVER,
    "other": _SERVER,
}

STATUS_TABLE: Final[Mapping[int, ErrorClass]] = {
    400: ErrorClass("invalid_prompt", 400),
    401: _LOGIN,
    402: ErrorClass("insufficient_quota", 402),
    403: ErrorClass("upstream_unauthorized", 403),
    404: ErrorClass("model_not_found", 404),
    413: ErrorClass("context_length_exceeded", 413),
    422: ErrorClass("invalid_prompt", 422),
    429: ErrorClass("rate_limit_exceeded", 429),
    503: ErrorClass("server_is_overloaded", 503),
    529: ErrorClass("server_is_overloaded", 503),
}

# Codes of the upstream's own body that say more than its status.
_BODY_CODES: Final = {
    "context_length_exceeded": 400,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "model_not_found": 404,
    "server_is_overloaded": 503,
}


def map_turn_error(error: Mapping[str, Any] | None) -> UpstreamFailed:
    """A turn's error as one of ours. Text around a refused credential is never repeated."""
    error = error or {}
    message = str(error.get("message") or "the codex turn failed without a reason")
    name, status = read_error_info(error.get("codexErrorInfo"))
    status = status or _status_in(message)
    kind = STATUS_TABLE.get(status or 0) or ERROR_TABLE.get(name, _SERVER)
    if name == "other" and status is None:
        message, kind = _read_raw_body(message, kind)
    if kind.code == "upstream_unauthorized":
        message = LOGIN_MESSAGE
    return UpstreamFailed(
        message[:2000],
        code=kind.code,
        status=status or kind.status,
        retry_after=_retry_after(message),
        metadata={"codex_error": name},
    )


def failure_of(failed: Failed, provider: str) -> UpstreamFailed:
    """A leg that failed before it said anything: an error with a kind of its own."""
    failure = UpstreamFailed(failed.message, code=failed.code, retry_after=_retry_after(failed.message))
    return specify(failure, provider)


def map_rpc_error(method: str, message: str) -> UpstreamFailed:
    """A JSON-RPC refusal of one of our calls: the text is all there is (nearly every code is -32600)."""
    lowered = message.lower()
    if "not logged in" in lowered or "login" in lowered or "unauthorized" in lowered:
        return UpstreamFailed(LOGIN_MESSAGE, code=_LOGIN.code, status=_LOGIN.status)
    if "overloaded" in lowered:
        return UpstreamFailed(f"codex refused `{method}`: {message}", code="server_is_overloaded", status=503)
    kind = ErrorClass("invalid_prompt", 400) if "image" in lowered or "dynamic tool" in lowered else _SERVER
    return UpstreamFailed(f"codex refused `{method}`: {message[:1000]}", code=kind.code, status=kind.status)


def read_error_info(info: Any) -> tuple[str, int | None]:
    """`codexErrorInfo` is a word, or an object with one key and perhaps the upstream's status."""
    match info:
        case str():
            return info, None
        case {**fields} if len(fields) == 1:
            name, detail = next(iter(fields.items()))
            status = detail.get("httpStatusCode") if isinstance(detail, Mapping) else None
            return str(name), status if isinstance(status, int) and status else None
        case _:
            return "other", None


def read_incomplete(error: Mapping[str, Any] | None) -> str | None:
    """The finish reason behind an answer that the upstream cut short; Codex reports it as an error."""
    found = re.search(r"incomplete response returned, reason: (\w+)", str((error or {}).get("message")), re.IGNORECASE)
    if found is None:
        return None
    return {"max_output_tokens": "length", "content_filter": "content_filter"}.get(found[1])


def _status_in(message: str) -> int | None:
    """Binaries before 0.160 put the upstream's status into words only."""
    found = re.match(r"unexpected status (\d{3})\b", message)
    return int(found[1]) if found else None


def _read_raw_body(message: str, kind: ErrorClass) -> tuple[str, ErrorClass]:
    """An upstream's 400 body, if that is what the message is."""
    if not message.lstrip().startswith("{"):
        return message, kind
    try:
        body = msgspec.json.decode(message)
    except (msgspec.DecodeError, RecursionError):
        return message, kind
    error = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(error, dict):
        return message, kind
    code = error.get("code")
    if isinstance(code, str) and code in _BODY_CODES:
        kind = ErrorClass(code, _BODY_CODES[code])
    else:
        kind = STATUS_TABLE[400]
    return str(error.get("message") or message), kind


def _retry_after(message: str) -> float | None:
    found = re.search(r"try again in (\d+(?:\.\d+)?) ?(ms|s)\b", message)
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2] == "ms" else 1)
