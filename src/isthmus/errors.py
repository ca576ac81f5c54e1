"""Everything raised on purpose, drawn as a tree: whose turn is it to act.

    IsthmusError
    ├── RequestRefused      the caller can fix it (bad field, unsupported feature, unknown id): it says what to do next
    ├── ConfigError         the operator can fix it (config file, provider file, missing key)
    │   ├── StoreUnavailable the store cannot be used: deleted, replaced, read-only, full, locked, no database
    │   └── StoreDamaged     what was asked for is stored, but not as it was written
    ├── LimitReached        a run met a limit and was asked to raise; it carries the run's result
    ├── WorkNotDone         a worker process gave a piece of work up, or none was free for it
    └── UpstreamFailed      the provider must act (it refused, broke off, timed out)
        ├── OutputInvalid   it answered, but the answer breaks the promised output contract
        ├── OutputUnchecked it answered, but the check of the answer took more than it may
        └── one subclass for each kind of failure that a program treats in its own way:
            CredentialsRefused, ModelNotFound, PromptRefused, ContextTooLong, QuotaSpent (final)
            RateLimited, Overloaded, UpstreamTimedOut, UpstreamUnreachable, UpstreamMalformed (worth another try)
            UpstreamBusy (not its fault: all connections that we allow ourselves are in use)
            UpstreamResting (it failed so often in a row that it is left alone for a while)

Every one of them has `code`, `retryable`, `retry_after`, `provider`, `status` and `request_id`.
Anything else that rises is our own bug. What a code means to everybody who has to act on it stands in `FAILURES`, the
one table: dialects read upstream statuses by it, retries and pools decide by it, the server answers by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

# The names are those of the seeds; the values are what travels in `error.code` and in logs.
BRIDGE_REQUEST_UNSUPPORTED_PARAMETER = "bridge.request.unsupported_parameter"
BRIDGE_REQUEST_UNSUPPORTED_INPUT_ITEM = "bridge.request.unsupported_input_item"
BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT = "bridge.response.invalid_output_format"
BRIDGE_RESPONSE_OUTPUT_UNCHECKED = "bridge.response.output_unchecked"
SCHEMA_TOO_LARGE = "schema_too_large"
REQUEST_TOO_LARGE = "request_too_large"
REFUSED_BY_HOOK = "refused_by_hook"
HOOK_FAILED = "hook_failed"
BY_HOOKS = frozenset({REFUSED_BY_HOOK, HOOK_FAILED})

LONGEST_WAIT: Final = 86_400.0
"""Seconds: nobody is asked to wait longer than a day, whatever a provider says."""

MAX_WORDS: Final = 4_000
"""Characters of an error's message."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a failure means: the HTTP status of our own answer, who can do something about it, and what may help."""

    status: int
    turn: Literal["caller", "provider", "operator"]
    retry: bool = False
    """Whether the same request may well succeed here a moment later."""
    elsewhere: bool = False
    """Whether another key or place of the same provider may do better at once."""
    eject: bool = False
    """Whether it says that the place is sick, so that others are used meanwhile."""
    breaks: bool = False
    """Whether several of them in a row say that asking is in vain, so that nobody is for a while."""
    final: bool = False
    """Whether asking again is useless however long one waits: somebody has to change something first."""
    codex: Literal["as it is", "in the stream", "as a refusal"] = "as it is"
    """How Codex must be told so that it does the right thing (see `server/codex_client.py`)."""
    upstream: tuple[int, ...] = ()
    wait: int = 0
    """Seconds of our own `Retry-After` where the provider told none; 0: no such header."""


class IsthmusError(Exception):
    """Base of all: a message for a person, a code for a program, and the facts around it."""

    default_code = "error"
    default_meaning = Meaning(500, "operator")
    """What a code means that has no row in the table."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        status: int | None = None,
        retry_after: float | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """`status` and `retry_after` are the provider's: its HTTP status, where it got so far, and the seconds that it
        asked us to wait."""
        self.message = shorten(message)
        super().__init__(self.message)
        self.code = code or self.default_code
        self.param = None if param is None else shorten(param)
        self.status = status
        self.retry_after = sane_wait(retry_after)
        self.metadata: Mapping[str, Any] = dict(metadata or {})

    @property
    def meaning(self) -> Meaning:
        return FAILURES.get(self.code, self.default_meaning)

    @property
    def retryable(self) -> bool:
        return self.meaning.retry

    @property
    def provider(self) -> str | None:
        return self.metadata.get("provider")

    @property
    def request_id(self) -> str | None:
        """The provider's own id of the request, for its support."""
        return self.metadata.get("request_id")


class RequestRefused(IsthmusError):
    default_code = "invalid_request"
    default_meaning = Meaning(400, "caller", final=True)

    @property
    def meaning(self) -> Meaning:
        """A code that clients know from providers means the same to them, and here that the caller asked for too much:
        for more than a limit or a budget of ours, for a model that we have not."""
        found = FAILURES.get(self.code, self.default_meaning)
        return replace(found, turn="caller") if found.turn == "provider" else found


class ConfigError(IsthmusError):
    default_code = "invalid_config"


class StoreUnavailable(ConfigError):
    default_code = "store_unavailable"


class StoreDamaged(ConfigError):
    default_code = "store_damaged"


class LimitReached(IsthmusError):
    """A run met one of its limits (`code` says which); `result` is all that it had done by then."""

    default_code = "limit_reached"

    def __init__(self, message: str, *, code: str | None = None, result: Any = None) -> None:
        super().__init__(message, code=code)
        self.result = result


class WorkNotDone(IsthmusError):
    """A worker process did not do a piece of work; the message names the limit and its setting. `work_too_costly`: it
    took too long, or too much memory. `workers_busy`: too much else was waiting. `work_failed`: a bug of ours."""

    default_code = "work_too_costly"


class UpstreamFailed(IsthmusError):
    """The provider failed us: `code` is one that clients know (`server_error`, `rate_limit_exceeded` …)."""

    default_code = "server_error"

    @property
    def meaning(self) -> Meaning:
        """A code of a vendor's own means what its status means."""
        return FAILURES.get(self.code) or FAILURES[code_of_status(self.status)]


class OutputInvalid(UpstreamFailed):
    default_code = BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT


class OutputUnchecked(UpstreamFailed):
    default_code = BRIDGE_RESPONSE_OUTPUT_UNCHECKED


class CredentialsRefused(UpstreamFailed):
    default_code = "upstream_unauthorized"  # the key is wrong, spent or not allowed to do this


class ModelNotFound(UpstreamFailed):
    default_code = "model_not_found"


class PromptRefused(UpstreamFailed):
    default_code = "invalid_prompt"


class ContextTooLong(UpstreamFailed):
    default_code = "context_length_exceeded"


class QuotaSpent(UpstreamFailed):
    default_code = "insufficient_quota"  # no money or quota left: waiting a moment does not help


class RateLimited(UpstreamFailed):
    default_code = "rate_limit_exceeded"


class Overloaded(UpstreamFailed):
    default_code = "server_is_overloaded"


class UpstreamTimedOut(UpstreamFailed):
    default_code = "upstream_timeout"


class UpstreamUnreachable(UpstreamFailed):
    default_code = "upstream_unreachable"


class UpstreamMalformed(UpstreamFailed):
    default_code = "upstream_malformed"  # it answers, but breaks the rules of HTTP


class UpstreamBusy(UpstreamFailed):
    default_code = "upstream_busy"


class UpstreamResting(UpstreamFailed):
    default_code = "upstream_resting"


def _passing(status: int, *upstream: int, wait: int = 0, breaks: bool = True) -> Meaning:
    """May be gone in a moment, and says something about the place rather than about the request."""
    return Meaning(status, "provider", True, elsewhere=True, eject=True, breaks=breaks, upstream=upstream, wait=wait)


FAILURES: Final[Mapping[str, Meaning]] = {
    # the caller's turn
    "missing_api_key": Meaning(401, "caller", final=True),
    "invalid_api_key": Meaning(401, "caller", final=True),
    "foreign_origin": Meaning(403, "caller", final=True),
    "operator_only": Meaning(403, "caller", final=True),
    "not_allowed": Meaning(403, "caller", final=True),
    # Somebody has a budget, and what this would take of it nobody knows.
    "model_unpriced": Meaning(403, "caller", final=True),
    "key_not_found": Meaning(404, "caller", final=True),
    "key_exists": Meaning(409, "caller", final=True),
    # Somebody else changed it at the same time: what they did is to be seen first.
    "key_changed": Meaning(409, "caller", final=True),
    # Like a provider's own refusal of a prompt: no SDK asks again, and Codex shows the words.
    REFUSED_BY_HOOK: Meaning(400, "caller", final=True),
    "response_not_found": Meaning(404, "caller", final=True),
    "conversation_not_found": Meaning(404, "caller", final=True),
    "item_not_in_conversation": Meaning(404, "caller", final=True),
    "trace_not_found": Meaning(404, "caller", final=True),
    "traces_off": Meaning(404, "caller", final=True),
    # OpenAI answers 400, which no SDK asks again by itself.
    "conversation_locked": Meaning(400, "caller"),
    "conversation_moved": Meaning(400, "caller"),
    # OpenAI answers 400: the id is a field of the request, not the address.
    "previous_response_not_found": Meaning(400, "caller", final=True),
    # A new connection is all it takes.
    "websocket_connection_limit_reached": Meaning(400, "caller"),
    "websocket_queue_full": Meaning(429, "caller", wait=1),
    "not_cancellable": Meaning(400, "caller", final=True),
    "not_found": Meaning(404, "caller", final=True),
    # An endpoint of OpenAI's, or of somebody else's, that we have decided not to have (`server/unserved.py`).
    "not_served": Meaning(404, "caller", final=True),
    "method_not_allowed": Meaning(405, "caller", final=True),
    "request_timeout": Meaning(408, "caller"),
    "previous_response_not_finished": Meaning(409, "caller"),
    "idempotency_key_reused": Meaning(409, "caller", final=True),
    # Clients ask again after a 409 by themselves: by then there may be an answer to give back.
    "idempotency_key_in_use": Meaning(409, "caller", wait=1),
    "payload_too_large": Meaning(413, "caller", final=True),
    "unsupported_encoding": Meaning(415, "caller", final=True),
    "upgrade_required": Meaning(426, "caller", final=True),
    "head_too_large": Meaning(431, "caller", final=True),
    # the provider's turn
    "context_length_exceeded": Meaning(400, "provider", final=True, codex="in the stream", upstream=(413,)),
    "invalid_prompt": Meaning(400, "provider", final=True, upstream=(400, 422)),
    "model_not_found": Meaning(404, "provider", final=True, codex="as a refusal", upstream=(404,)),
    "insufficient_quota": Meaning(429, "provider", elsewhere=True, eject=True, final=True, upstream=(402,)),
    # A conflict is a lock that somebody else holds: the SDKs wait and ask again, as they do for a 429.
    # Codex gives up at once on a 429 that names no time.
    # It answers, and says itself when to come back: that is no reason to leave it alone.
    "rate_limit_exceeded": _passing(429, 429, 409, wait=5, breaks=False),
    # Not 401: that would speak of the client's own key. Not 5xx: clients would ask again.
    "upstream_unauthorized": Meaning(
        403, "provider", elsewhere=True, eject=True, final=True, codex="as a refusal", upstream=(401, 403)
    ),
    "upstream_unreachable": _passing(502),
    # It answers, but not in HTTP: a broken proxy or server, rarely a moment's trouble.
    "upstream_malformed": _passing(502),
    "server_error": _passing(502),
    # The model was asked again already, as often as the settings allow.
    BRIDGE_RESPONSE_INVALID_OUTPUT_FORMAT: Meaning(502, "provider", final=True, codex="as a refusal"),
    BRIDGE_RESPONSE_OUTPUT_UNCHECKED: Meaning(502, "provider", final=True, codex="as a refusal"),
    # Vectors cannot be cut, and the same texts make the same ones.
    "embeddings_too_large": Meaning(502, "provider", final=True),
    "images_too_large": Meaning(502, "provider", final=True),
    "server_is_overloaded": _passing(503, 503, 529, wait=1),
    "upstream_timeout": _passing(504, 504, 408),
    # It was not asked at all; who may be asked in its place is asked at once, and nobody waits here.
    "upstream_resting": Meaning(503, "provider", elsewhere=True, wait=5),
    # the operator's turn
    # All connections that we allow ourselves are in use, or all files: that says nothing about the provider's health.
    "upstream_busy": Meaning(503, "operator", retry=True, elsewhere=True, wait=1),
    # Redis, where limits are counted there and nobody is to be let through without.
    "limits_unavailable": Meaning(503, "operator", wait=1),
    # Looked at again every second: it may be back by then, and who waits has paid nothing.
    "store_unavailable": Meaning(503, "operator", wait=5),
    # What was written is gone until somebody restores it; everything else is served.
    "store_damaged": Meaning(503, "operator", final=True),
    "draining": Meaning(503, "operator", wait=1),
    "workers_busy": Meaning(503, "operator", wait=1),
    "work_failed": Meaning(500, "operator"),
    HOOK_FAILED: Meaning(500, "operator"),
}
"""Code → what it means. Every table of failures elsewhere is read off this one."""

_BY_STATUS: Final = {status: code for code, meaning in FAILURES.items() for status in meaning.upstream}
_KINDS: Final = {kind.default_code: kind for kind in UpstreamFailed.__subclasses__()}


def shorten(words: str) -> str:
    """A refusal quotes what it refuses, and that may be a name of 40 MB: of more than a page, both ends are told."""
    left = len(words) - MAX_WORDS
    if left <= 0:
        return words
    half = MAX_WORDS // 2
    return f"{words[:half]} [… {left} characters …] {words[-half:]}"


def sane_wait(seconds: float | None) -> float | None:
    """A time to wait that can be sent, slept and printed; `None` for what is none."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_WAIT)


def code_of_status(status: int | None) -> str:
    """What a provider's bare status says: any other 4xx calls the request wrong, the rest is the server's trouble."""
    if status is None:
        return "server_error"
    return _BY_STATUS.get(status) or ("invalid_prompt" if 400 <= status < 500 else "server_error")


def specify(failure: UpstreamFailed, provider: str | None = None) -> UpstreamFailed:
    """A plain failure as the subclass that its code or status stands for; anything more exact stays as it is. The code
    comes first, because it knows more: an HTTP 400 may be about the context, a 429 about money. A code that only says
    "it failed" gives way to the one that its status stands for."""
    if type(failure) is not UpstreamFailed:
        return failure
    metadata = {"provider": provider, **failure.metadata} if provider is not None else failure.metadata
    code = failure.code if failure.code != "server_error" else code_of_status(failure.status)
    kind = _KINDS.get(code) or _KINDS.get(code_of_status(failure.status), UpstreamFailed)
    return kind(failure.message, code=code, status=failure.status, retry_after=failure.retry_after, metadata=metadata)
