"""A conversation as providers insist on it: every call answered once, right behind the message that made it.

In: messages as they were given (cut off, reordered, half answered). Out: a valid list, notes on what was done, and
the calls that are left open on purpose. Messages that need nothing come back as the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from isthmus.tools.calls import ToolCall
from isthmus.tools.messages import Message, TextPart, ToolCallPart, ToolResultPart

UNANSWERED: Final = "the call was cancelled before it had a result"


@dataclass(frozen=True, slots=True)
class Repaired:
    messages: list[Message]
    notes: tuple[str, ...] = ()
    open: tuple[ToolCall, ...] = ()
    """Calls of the last turn that were left unanswered, because somebody is going to answer them now."""


def repair(messages: Sequence[Message], *, keep_open: bool = False) -> Repaired:
    """Put results behind their calls, answer what is dangling, drop what answers nothing."""
    notes: list[str] = []
    spoken = [_without_results(message, notes) for message in messages]
    unused = [(at, part) for at, message in enumerate(messages) for part in message.tool_results]
    last = max((at for at, message in enumerate(spoken) if message is not None and message.tool_calls), default=-1)
    still_open = keep_open and all(message is None for message in spoken[last + 1 :])
    made: list[Message] = []
    waiting: list[ToolCall] = []
    for at, message in enumerate(spoken):
        if message is None:
            continue
        made.append(message)
        results: list[ToolResultPart] = []
        for call in message.tool_calls:
            found = next((entry for entry in unused if entry[0] > at and entry[1].call_id == call.id), None)
            if found is not None:
                unused.remove(found)
                results.append(found[1])
            elif still_open and at == last:
                waiting.append(call)
            else:
                results.append(cancelled_part(call))
                notes.append(f"the call `{call.id}` to `{call.name}` had no result; it counts as cancelled")
        if results:
            made.append(_as_before(messages, at, results))
    notes += [f"a result for `{part.call_id}` answers no call; it was dropped" for _, part in unused]
    return Repaired(made, tuple(notes), tuple(waiting))


def _without_results(message: Message, notes: list[str]) -> Message | None:
    """What a message says besides results; `None` where that is nothing. Only assistants make calls."""
    rest = tuple(part for part in message.content if not isinstance(part, ToolResultPart))
    if message.role != "assistant" and any(isinstance(part, ToolCallPart) for part in rest):
        rest = tuple(part for part in rest if not isinstance(part, ToolCallPart))
        notes.append(f"a call in a `{message.role}` message was dropped; only assistants make calls")
    if rest == message.content and message.role != "tool":
        return message
    if not rest:
        return None
    return replace(message, role="user" if message.role == "tool" else message.role, content=rest)


def cancelled_part(call: ToolCall, words: str = UNANSWERED) -> ToolResultPart:
    return ToolResultPart(call.id, call.name, (TextPart(words),), "cancelled")


def find_problems(messages: Sequence[Message]) -> list[str]:
    """What a provider would refuse about a conversation; empty when it is valid."""
    return list(_problems(messages))


def _problems(messages: Sequence[Message]) -> Iterator[str]:
    for at, message in enumerate(messages):
        asked = [call.id for call in message.tool_calls]
        behind = messages[at + 1] if at + 1 < len(messages) else None
        answered = [part.call_id for part in behind.tool_results] if behind is not None else []
        if asked and asked != answered:
            yield f"message {at} makes the calls {asked}, but what follows answers {answered}"
        if message.role == "tool" and not (at and messages[at - 1].tool_calls):
            yield f"message {at} answers calls that nobody made"


def _as_before(messages: Sequence[Message], at: int, results: list[ToolResultPart]) -> Message:
    """The tool message that already stands there, if it says exactly this."""
    behind = messages[at + 1] if at + 1 < len(messages) else None
    if behind is not None and behind.role == "tool" and behind.content == tuple(results):
        return behind
    return Message("tool", tuple(results))
