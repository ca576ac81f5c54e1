"""What comes back: of one model call a `ChatResult`, of a run a `RunResult`, whole and resumable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from isthmus.client.limits import StopReason
from isthmus.client.usage import Usage
from isthmus.tools.calls import ToolCall
from isthmus.tools.messages import Message
from isthmus.tools.results import ToolResult

if TYPE_CHECKING:
    from isthmus.client.asked import Asked

T = TypeVar("T")

FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "refusal"]


@dataclass(frozen=True, slots=True)
class ChatResult:
    """One answer of a model. Nothing was executed."""

    message: Message
    usage: Usage
    finish_reason: FinishReason
    model: str = ""
    diagnostics: tuple[Mapping[str, Any], ...] = ()
    """What was degraded or ignored to fit the provider, and what was repaired in its answer."""
    response: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The whole Response object."""

    @property
    def text(self) -> str:
        return self.message.text

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.message.tool_calls


@dataclass(frozen=True, slots=True)
class RunResult(Generic[T]):
    """A run, however it ended."""

    output: T | None
    """The answer: text, or an `output_type`. `None` when the run did not get that far."""
    message: Message
    """The last assistant message; empty when there is none."""
    messages: tuple[Message, ...]
    """The whole conversation, valid for every provider: pass it on to continue."""
    new_messages: tuple[Message, ...]
    tool_results: tuple[ToolResult, ...]
    usage: Usage
    stop_reason: StopReason
    turns: int
    pending: tuple[ToolCall, ...] = ()
    """Calls that wait for an approval, or for whoever carries them out."""
    diagnostics: tuple[Mapping[str, Any], ...] = ()
    asked: Asked | None = field(default=None, repr=False, compare=False)
    """What the run was asked: `resume` goes on with it."""

    @property
    def text(self) -> str:
        return self.message.text


def partial_result(error: BaseException | None) -> RunResult[Any] | None:
    """What a run had done when it ended in an exception: a failure, a cancellation, a timeout around it.

    The conversation in it is valid and can be continued.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        found = getattr(error, "result", None)
        if isinstance(found, RunResult):
            return found
        error = error.__cause__ or error.__context__
    return None
