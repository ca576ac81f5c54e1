"""Everything raised on purpose, drawn as a tree: whose turn is it to act.

    IsthmusError
    ├── RequestRefused      the caller can fix it (bad field, unsupported feature, unknown id)
    ├── ConfigError         the operator can fix it (config file, provider file, missing key)
    ├── LimitReached        a run met a limit and was asked to raise; it carries the run's result
    ├── WorkNotDone         a worker process gave a piece of work up, or none was free for it
    └── UpstreamFailed      the provider must act (it refused, broke off, timed out)
        ├── OutputInvalid   it answered, but the answer breaks the promised output contract
        ├── OutputUnchecked it answered, but the check of the answer took more than it may
        └── one subclass for each kind of failure that a program treats in its own way:
            CredentialsRefused, ModelNotFound, PromptRefused, ContextTooLong, QuotaSpent (final)
            RateLimited, Overloaded, UpstreamTimedOut, UpstreamUnreachable (worth another try)

Every one of them has `code`, `retryable`, `retry_after`, `provider`, `status` and `request_id`.
Anything else that rises is our own bug. Our own HTTP statuses are not known here: `server/errors.py` maps codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# The names are those of the seeds; the values are what travels in `error.code` and in logs.
BRIDGE_REQUEST_UNSUPPORTED_PARAMETER = "bridge.request.unsupported_parameter"
BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM = "bridge.request.unsupported_input_item"
BRIDGE_REQUEST_UNSUPPORTED_INPUT_CONTENT = "bridge.request.unsupported_input_content"
BRIDGE_REQUEST_UNSUPPORTED_TOOL = "bridge.request.unsupported_tool"
BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT = "bridge.response.invalid_output_format"
BRIDGE_RESPONSE_OUTPUT_UNCHECKED = "bridge.response.output_unchecked"
SCHEMA_TOO_LARGE = "schema_too_large"


class IsthmusError(Exception):
    """Base of all: a message for a person, a code for a program, and the facts around it."""

    default_code = "error"
    retryable = False
    """Whether the same request may well succeed a moment later."""
    retry_after: float | None = None
    """Seconds that the provider asked us to wait."""
    status: int | None = None
    """The provider's HTTP status, where it got so far."""

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

    @property
    def provider(self) -> str | None:
        """The provider that it is about."""
        return self.metadata.get("provider")

    @property
    def request_id(self) -> str | None:
        """The provider's own id of the request, for its support."""
        return self.metadata.get("request_id")


class RequestRefused(IsthmusError):
    """The caller can fix this: it says which field, and what to do next."""

    default_code = "invalid_request"


class ConfigError(IsthmusError):
    """The operator can fix this: a config or provider file says something we cannot use."""

    default_code = "invalid_config"


class LimitReached(IsthmusError):
    """A run met one of its limits (`code` says which); `result` is all that it had done by then."""

    default_code = "limit_reached"

    def __init__(self, message: str, *, code: str | None = None, result: Any = None) -> None:
        super().__init__(message, code=code)
        self.result = result


class WorkNotDone(IsthmusError):
    """A worker process did not do a piece of work; the message names the limit and its setting.

    `work_too_costly`: it took too long, or too much memory. `workers_busy`: too much else was waiting.
    `work_failed`: a bug of ours.
    """

    default_code = "work_too_costly"


class UpstreamFailed(IsthmusError):
    """The provider failed us: `code` is one that clients know (`server_error`, `rate_limit_exceeded` …)."""

    default_code = "server_error"
    retryable = True

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
    retryable = False


class OutputUnchecked(UpstreamFailed):
    """Whether the answer keeps the output contract could not be found out within the limits of the gateway."""

    default_code = BRIDGE_RESPONSE_OUTPUT_UNCHECKED
    retryable = False


class CredentialsRefused(UpstreamFailed):
    """The key is wrong, spent or not allowed to do this."""

    default_code = "upstream_unauthorized"
    retryable = False


class ModelNotFound(UpstreamFailed):
    default_code = "model_not_found"
    retryable = False


class PromptRefused(UpstreamFailed):
    """The provider calls the request itself wrong."""

    default_code = "invalid_prompt"
    retryable = False


class ContextTooLong(UpstreamFailed):
    default_code = "context_length_exceeded"
    retryable = False


class QuotaSpent(UpstreamFailed):
    """No money or quota left: waiting a moment does not help."""

    default_code = "insufficient_quota"
    retryable = False


class RateLimited(UpstreamFailed):
    default_code = "rate_limit_exceeded"


class Overloaded(UpstreamFailed):
    default_code = "server_is_overloaded"


class UpstreamTimedOut(UpstreamFailed):
    default_code = "upstream_timeout"


class UpstreamUnreachable(UpstreamFailed):
    default_code = "upstream_unreachable"


_BY_STATUS: Final[Mapping[int, type[UpstreamFailed]]] = {
    400: PromptRefused,
    401: CredentialsRefused,
    403: CredentialsRefused,
    404: ModelNotFound,
    408: UpstreamTimedOut,
    409: RateLimited,
    413: ContextTooLong,
    422: PromptRefused,
    429: RateLimited,
    503: Overloaded,
    504: UpstreamTimedOut,
    529: Overloaded,
}


def specify(failure: UpstreamFailed, provider: str | None = None) -> UpstreamFailed:
    """A plain failure as the subclass that its code or status stands for; anything more exact stays as it is.

    The code comes first, because it knows more: an HTTP 400 may be about the context, a 429 about money.
    """
    if type(failure) is not UpstreamFailed:
        return failure
    kind = _BY_CODE.get(failure.code)
    if kind is None and failure.status is not None:
        kind = _BY_STATUS.get(failure.status)
    metadata = dict(failure.metadata)
    if provider is not None:
        metadata.setdefault("provider", provider)
    # A code that only says "it failed" gives way to the one that its status stands for.
    code = failure.code if kind is None or failure.code != "server_error" else kind.default_code
    return (kind or UpstreamFailed)(
        failure.message, code=code, status=failure.status, retry_after=failure.retry_after, metadata=metadata
    )


_BY_CODE: Final[Mapping[str, type[UpstreamFailed]]] = {
    kind.default_code: kind
    for kind in (
        OutputInvalid,
        OutputUnchecked,
        CredentialsRefused,
        ModelNotFound,
        PromptRefused,
        ContextTooLong,
        QuotaSpent,
        RateLimited,
        Overloaded,
        UpstreamTimedOut,
        UpstreamUnreachable,
    )
}
