"""Everything raised on purpose, drawn as a tree: whose turn is it to act.

    IsthmusError
    ├── RequestRefused      the caller can fix it (bad field, unsupported feature, unknown id)
    ├── ConfigError         the operator can fix it (config file, provider file, missing key)
    └── UpstreamFailed      the provider must act (it refused, broke off, timed out)
        └── OutputInvalid   it answered, but the answer breaks the promised output contract

Anything else that rises is our own bug. HTTP statuses are not known here: `server/errors.py` maps codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The names are those of the seeds; the values are what travels in `error.code` and in logs.
BRIDGE_REQUEST_UNSUPPORTED_PARAMETER = "bridge.request.unsupported_parameter"
BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM = "bridge.request.unsupported_input_item"
BRIDGE_REQUEST_UNSUPPORTED_INPUT_CONTENT = "bridge.request.unsupported_input_content"
BRIDGE_REQUEST_UNSUPPORTED_TOOL = "bridge.request.unsupported_tool"
BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT = "bridge.response.invalid_output_format"


class IsthmusError(Exception):
    """Base of all: a message for a person, a code for a program, and the facts around it."""

    default_code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.param = param
        self.metadata: Mapping[str, Any] = dict(metadata or {})


class RequestRefused(IsthmusError):
    """The caller can fix this: it says which field, and what to do next."""

    default_code = "invalid_request"


class ConfigError(IsthmusError):
    """The operator can fix this: a config or provider file says something we cannot use."""

    default_code = "invalid_config"


class UpstreamFailed(IsthmusError):
    """The provider failed us: `code` is one that clients know (`server_error`, `rate_limit_exceeded` …)."""

    default_code = "server_error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message, code=code, metadata=metadata)
        self.status = status
        self.retry_after = retry_after


class OutputInvalid(UpstreamFailed):
    """The model's answer does not keep the output contract that the request made binding."""

    default_code = BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT
