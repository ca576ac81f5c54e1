"""Errors → HTTP: one table of codes, one body shape, `{"error": {message, type, param, code}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.errors import ConfigError, IsthmusError, RequestRefused, UpstreamFailed
from isthmus.protocol.json import JsonObject

STATUSES: Final[Mapping[str, int]] = {
    # the caller's turn
    "foreign_origin": 403,
    "response_not_found": 404,
    "previous_response_not_found": 404,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "previous_response_not_finished": 409,
    "payload_too_large": 413,
    "upgrade_required": 426,
    # the provider's turn
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "model_not_found": 404,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "upstream_unauthorized": 502,
    "upstream_unreachable": 502,
    "server_error": 502,
    "server_is_overloaded": 503,
    "upstream_timeout": 504,
    # the operator's turn
    "store_unavailable": 503,
    "draining": 503,
    "workers_busy": 503,
    "work_failed": 500,
}

RATE_LIMIT_WAIT: Final = "5"
"""Seconds to wait where the provider limits the rate without saying for how long."""


def status_of(error: IsthmusError) -> int:
    known = STATUSES.get(error.code)
    if known is not None:
        return known
    if isinstance(error, RequestRefused):
        return 400
    return 502 if isinstance(error, UpstreamFailed) else 500


def error_body(error: IsthmusError) -> JsonObject:
    status = status_of(error)
    body: JsonObject = {
        "message": error.message,
        "type": _type(status),
        "param": error.param,
        "code": error.code,
    }
    diagnostics = error.metadata.get("diagnostics")
    if diagnostics:
        body["diagnostics"] = diagnostics
    return {"error": body}


def error_headers(error: IsthmusError) -> dict[str, str]:
    if error.code == "request_timeout":
        return {"connection": "close"}  # the rest of the body may still come: it must not be read as a request
    if isinstance(error, UpstreamFailed) and error.retry_after is not None:
        return {"retry-after": f"{max(round(error.retry_after), 1)}"}
    if error.code in ("draining", "server_is_overloaded", "workers_busy"):
        return {"retry-after": "1"}
    if error.code == "rate_limit_exceeded":
        return {"retry-after": RATE_LIMIT_WAIT}  # Codex gives up at once on a 429 that names no time
    return {}


def internal_error() -> JsonObject:
    """A bug of ours: it says nothing about our insides."""
    message = "the gateway failed while it handled this request; its log says more"
    return {"error": {"message": message, "type": "server_error", "param": None, "code": "internal_error"}}


def draining() -> ConfigError:
    return ConfigError("the gateway is shutting down; try again in a moment", code="draining")


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"
