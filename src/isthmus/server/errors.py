"""Errors → HTTP: the statuses of the one table, one body shape, `{"error": {message, type, param, code}}`."""

from __future__ import annotations

import math
from typing import Final

from isthmus.bridge.doors.messages.failures import error_kind
from isthmus.errors import ConfigError, IsthmusError
from isthmus.protocol.json import JsonObject

_OVERLOADED: Final = 529


def error_body(error: IsthmusError, *, specified: bool = False) -> JsonObject:
    """`specified`: with the types that Open Responses lists."""
    status = error.meaning.status
    body: JsonObject = {
        "message": error.message,
        "type": _specified_type(status) if specified else _type(status),
        "param": error.param,
        "code": error.code,
    }
    diagnostics = error.metadata.get("diagnostics")
    if diagnostics:
        body["diagnostics"] = diagnostics
    return {"error": body}


def error_headers(error: IsthmusError) -> dict[str, str]:
    """When to ask again, and whether: both as OpenAI's SDKs and Codex read them; and what the provider that refused
    said of its rate limits. Who asks again after the model had begun to speak pays for all of it once more."""
    headers: dict[str, str] = {"www-authenticate": "Bearer"} if error.meaning.status == 401 else {}
    if error.code in ("request_timeout", "head_too_large"):
        headers["connection"] = "close"  # the rest may still come: it must not be read as a request
    if accepted := error.metadata.get("accepts"):
        headers["accept-encoding"] = accepted
    wait = error.meaning.wait if error.retry_after is None else max(math.ceil(error.retry_after), 1)
    if wait:
        headers["retry-after"] = str(wait)
    if error.meaning.final or error.metadata.get("begun"):
        headers["x-should-retry"] = "false"
    return {**headers, **error.metadata.get("limits", {})}


def anthropic_error(error: IsthmusError, request_id: str) -> tuple[int, JsonObject]:
    """The status and the body that Anthropic's clients read; a server that has too much to do is a 529 there."""
    status = error.meaning.status
    body = _anthropic_body(error_kind(status), error.message, request_id)
    body["error"] |= {name: error.metadata[name] for name in ("diagnostics", "said") if error.metadata.get(name)}
    return _OVERLOADED if status == 503 else status, body


def _anthropic_body(kind: str, message: str, request_id: str) -> JsonObject:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


def internal_error(request_id: str | None = None) -> JsonObject:
    """A bug of ours: it says nothing about our insides. With an id as Anthropic's clients read it."""
    message = "the gateway failed while it handled this request; its log says more"
    if request_id is not None:
        return _anthropic_body("api_error", message, request_id)
    return {"error": {"message": message, "type": "server_error", "param": None, "code": "internal_error"}}


def overloaded(why: str) -> IsthmusError:
    return IsthmusError(f"{why}; try again in a moment", code="server_is_overloaded")


def draining() -> ConfigError:
    return ConfigError("the gateway is shutting down; try again in a moment", code="draining")


def _specified_type(status: int) -> str:
    if status in (404, 429):
        return "not_found" if status == 404 else "too_many_requests"
    return "invalid_request" if status < 500 else "server_error"


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "invalid_request_error" if status < 500 else "server_error"
