"""Provider finish reasons → Responses statuses."""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from isthmus.errors import IsthmusError
from isthmus.protocol.response import IncompleteReason

Status = Literal["completed", "incomplete", "failed"]


class Outcome(msgspec.Struct, frozen=True):
    status: Status
    incomplete_reason: IncompleteReason | None = None
    error_code: str = ""
    error_message: str = ""


def _failed(message: str, code: str = "server_error") -> Outcome:
    return Outcome("failed", None, code, message)


# The seed's rows first, then the vendors' own values, as their documentation lists them.
_COMPLETED: Final = ("stop", "tool_calls", "function_call", "end_turn", "eos", "stop_sequence", "tool_use")
_TOO_LONG: Final = (
    *("length", "model_context_window_exceeded", "model_length", "max_tokens", "repetition_truncation"),
    "pause_turn",  # the provider's own tools ran on and on; a turn that can be gone on with is, by `turn`
)
_FILTERED: Final = ("content_filter", "sensitive", "safety", "refusal")
TABLE: Final[dict[str, Outcome]] = {
    **dict.fromkeys(_COMPLETED, Outcome("completed")),
    **dict.fromkeys(_TOO_LONG, Outcome("incomplete", "max_output_tokens")),
    **dict.fromkeys(_FILTERED, Outcome("incomplete", "content_filter")),
    "network_error": _failed("The provider reported a network error."),
    "insufficient_system_resource": _failed(
        "The provider ran out of resources in mid-answer; try again.", "server_is_overloaded"
    ),
    "abort": _failed("The provider aborted the answer."),
    "error": _failed("The provider ended the answer with an error."),
}


def map_provider_finish_reason(reason: str | None) -> Outcome:
    """The terminal state for a finish reason; a missing or unknown one is a failure that says so."""
    if reason is None:
        return _failed("Provider returned no finish reason")
    return TABLE.get(reason) or _failed(f"Unexpected finish reason `{reason[:80]}`")


def words_of(failure: IsthmusError) -> str:
    """What a stream says of a failure. It has no `Retry-After`: Codex reads the wait from these very words."""
    if failure.code != "rate_limit_exceeded" or failure.retry_after is None or "try again in" in failure.message:
        return failure.message
    return f"{failure.message}; try again in {max(failure.retry_after, 0.1):g}s"
