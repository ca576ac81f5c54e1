"""How far a run may go. Limits end runs, they do not destroy them: the result says which one was met."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isthmus.tools.toolset import MAX_CALLS

OnLimit = Literal["return", "finalize", "raise"]
"""`return` what there is; `finalize`: one more answer without tools; `raise` a `LimitReached` with the result."""

StopReason = Literal[
    "completed",
    "max_turns",
    "max_tool_calls",
    "timeout",
    "cancelled",
    "approval_required",
    "repeated_calls",
    "tool_errors",
    "length",
    "content_filter",
    "refusal",
    "budget",
    "failed",
]


@dataclass(frozen=True, slots=True)
class Limits:
    max_turns: int = 16
    """Model calls."""
    max_tool_calls: int | None = None
    """Calls carried out; those beyond it are answered as `skipped`."""
    max_calls_per_reply: int = MAX_CALLS
    """Calls of one answer that are carried out; those beyond it are answered as `skipped`, and the run goes on."""
    timeout: float | None = None
    """Seconds for the whole run, tools included; it reaches the socket."""
    tool_timeout: float | None = 60.0
    """Seconds for one tool that has no `timeout` of its own."""
    cleanup_grace: float = 1.0
    """Seconds that a tool gets to stop after it was told to."""
    max_concurrency: int = 8
    """Tools that run at the same time."""
    max_tokens: int | None = None
    """Tokens in all, input and output."""
    max_cost: float | None = None
    """US dollars, where prices are known."""
    max_consecutive_errors: int = 3
    """Turns in a row in which every call failed."""
    max_repeated_calls: int = 3
    """Turns in a row in which the same call comes again, with the same arguments."""
    max_result_chars: int = 100_000
    """Text of one result that the model gets to see."""
