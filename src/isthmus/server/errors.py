"""Errors → HTTP: the statuses of the one table, one body shape, `{"error": {message, type, param, code}}`."""

from __future__ import annotations

from typing import Final

from isthmus.errors import ConfigError, IsthmusError, UpstreamFailed
from isthmus.protocol.json import JsonObject

RATE_LIMIT_WAIT: Final = "5"
"""Seconds to wait where the provider limits the rate without saying for how long."""


def error_body(error: IsthmusError) -> JsonObject:
    body: JsonObject = {
        "message": error.message,
        "type": _type(error.meaning.status),
        "param": error.param,
        "code": error.code,
    }
    diagnostics = error.metadata.get("diagnostics")
    if diagnostics:
        body["diagnostics"] = diagnostics
    return {"error": body}


def error_headers(error: IsthmusError) -> dict[str, str]:
    if error.meaning.status == 401:
        return {"www-authenticate": "Bearer"}
    if error.code == "request_timeout":
        return {"connection": "close"}  # the rest of the body may still come: it must not be read as a request
    if isinstance(error, UpstreamFailed) and error.retry_after is not None:
        return {"retry-after": f"{max(round(error.retry_after), 1)}"}
    if error.code in ("draining", "server_is_overloaded", "workers_busy"):
        return {"retry-after": "1"}
    if error.code == "rate_limit_exceeded":
        return {"retry-after": RATE_LIMIT_WAIT}  # Codex gives up at once on a 429 that names no time
    if error.meaning.final and error.meaning.status >= 429:
        return {"x-should-retry": "false"}  # OpenAI's SDKs would ask again after any 429 or 5xx
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
