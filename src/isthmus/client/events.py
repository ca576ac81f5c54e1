"""What a run tells while it goes: one small value per thing that happens, read with `match`.

turn      TextDelta · ThinkingDelta · RefusalDelta · ToolCallStarted · ToolCallDelta · ToolCallReady · TurnFinished
tools     ToolStarted · ToolFinished · ApprovalRequired
run       Retrying · HistoryRepaired · RunFinished (always last)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isthmus.tools.calls import ToolCall
from isthmus.tools.results import ToolResult

if TYPE_CHECKING:
    from isthmus.client.result import ChatResult, RunResult


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model begins to write a call."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of a call's argument text."""

    id: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolCallReady:
    """The call is whole (good or bad: see `call.error`)."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """One answer of the model is whole."""

    reply: ChatResult


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolFinished:
    result: ToolResult


@dataclass(frozen=True, slots=True)
class ApprovalRequired:
    """The run will pause: `resume` it with a decision about this call."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Retrying:
    """The provider failed before it said anything; it is asked again after `wait` seconds."""

    error: Exception
    attempt: int
    wait: float


@dataclass(frozen=True, slots=True)
class HistoryRepaired:
    """The conversation that was given was not whole; what was done about it, in words."""

    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunFinished:
    result: RunResult[Any]


TurnEvent = TextDelta | ThinkingDelta | RefusalDelta | ToolCallStarted | ToolCallDelta | ToolCallReady | Retrying
RunEvent = TurnEvent | TurnFinished | ToolStarted | ToolFinished | ApprovalRequired | HistoryRepaired | RunFinished
