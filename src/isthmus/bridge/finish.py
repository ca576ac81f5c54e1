"""Provider finish reasons → Responses statuses: the seed's nine rows, then the vendors' own values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from isthmus.protocol.response import IncompleteReason

Status = Literal["completed", "incomplete", "failed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    status: Status
    incomplete_reason: IncompleteReason | None = None
    error_code: str = ""
    error_message: str = ""


def _failed(message: str, code: str = "server_error") -> Outcome:
    return Outcome("failed", None, code, message)


_COMPLETED: Final = Outcome("completed")
_TOO_LONG: Final = Outcome("incomplete", incomplete_reason="max_output_tokens")
_FILTERED: Final = Outcome("incomplete", incomplete_reason="content_filter")

TABLE: Final[dict[str, Outcome]] = {
    "stop": _COMPLETED,
    "tool_calls": _COMPLETED,
    "length": _TOO_LONG,
    "model_context_window_exceeded": _TOO_LONG,
    "content_filter": _FILTERED,
    "sensitive": _FILTERED,
    "network_error": _failed("The provider reported a network error."),
    # Vendors' own values, as their documentation lists them.
    "function_call": _COMPLETED,
    "end_turn": _COMPLETED,
    "eos": _COMPLETED,
    "stop_sequence": _COMPLETED,
    "tool_use": _COMPLETED,
    "model_length": _TOO_LONG,
    "max_tokens": _TOO_LONG,
    "repetition_truncation": _TOO_LONG,
    "safety": _FILTERED,
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
