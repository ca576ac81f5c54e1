"""A tool's return value → the one typed result of its call: your object on one side, what the model reads on the other.

In: a value, or an exception. Out: a `ToolResult`, never an exception. The model sees bounded words and no
traceback; the exception itself stays on the application's side.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, get_args

from isthmus.tools.calls import ToolCall
from isthmus.tools.context import ToolReturn
from isthmus.tools.messages import (
    OpaquePart,
    Part,
    ResultStatus,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

MAX_ERROR: Final = 2_000
DONE: Final = "done"
"""What the model reads of a tool that returns nothing."""


@dataclass(frozen=True, slots=True)
class ToolErrorInfo:
    code: str
    message: str
    exception: BaseException | None = None
    """For your program and your log; never sent."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    call_id: str
    name: str
    status: ResultStatus
    value: Any = None
    content: tuple[Part, ...] = ()
    error: ToolErrorInfo | None = None
    duration: float = 0.0
    ends_run: bool = False
    """The tool raised `StopRun`: `value` is the run's output."""

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    @property
    def text(self) -> str:
        """The words that the model reads."""
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    def part(self) -> ToolResultPart:
        return ToolResultPart(self.call_id, self.name, self.content, self.status)


def succeed(call: ToolCall, value: Any, *, limit: int, ends_run: bool = False) -> ToolResult:
    """The result of a tool that returned."""
    try:
        told = value.content if isinstance(value, ToolReturn) else value
        kept = value.value if isinstance(value, ToolReturn) else value
        content = bound(tuple(_sendable(part) for part in _render(told)), limit)
    except Exception as error:
        message = (
            f"`{call.name}` returned a {type(value).__name__}, which cannot be shown to a model: {words_of(error)}"
        )
        return fail(call, "error", "result_not_serialisable", message, error)
    return ToolResult(call.id, call.name, "ok", kept, content, ends_run=ends_run)


def fail(
    call: ToolCall, status: ResultStatus, code: str, message: str, exception: BaseException | None = None
) -> ToolResult:
    """The result of a call that did not succeed; the model reads `message`."""
    words = whole_characters(message if len(message) <= MAX_ERROR else f"{message[:MAX_ERROR]} […]")
    return ToolResult(call.id, call.name, status, None, (TextPart(words),), ToolErrorInfo(code, message, exception))


def bound(content: tuple[Part, ...], limit: int) -> tuple[Part, ...]:
    """Text beyond `limit` characters gives way in the middle: both ends of a long output matter."""
    total = sum(len(part.text) for part in content if isinstance(part, TextPart))
    if total <= limit:
        return content
    kept: list[Part] = []
    left = limit
    for part in content:
        if not isinstance(part, TextPart):
            kept.append(part)
        elif left > 0:
            kept.append(TextPart(_shorten(part.text, left)))
            left -= len(part.text)
    return tuple(kept)


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}\n[… {len(text) - limit} characters left out …]\n{text[len(text) - tail :]}"


def words_of(error: BaseException) -> str:
    """What an exception says; one whose `__str__` fails says that much."""
    try:
        return str(error)
    except (Exception, SystemExit) as problem:
        return f"(it cannot be shown: its `__str__` raised {type(problem).__name__})"


def whole_characters(text: str) -> str:
    """The text as UTF-8 can carry it: halves that belong together are joined, a lone half becomes U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _sendable(part: Part) -> Part:
    """The part as a request can carry it; raises for one that none can."""
    import msgspec

    match part:
        case TextPart(text):
            return part if (whole := whole_characters(text)) is text else dataclasses.replace(part, text=whole)
        case ThinkingPart() | ToolCallPart() | ToolResultPart() | OpaquePart():
            raise TypeError(f"{type(part).__name__} stands by itself in a conversation, never in a result")
        case _:
            msgspec.json.encode(part)  # an address or a file's name with half a character would fail when it is sent
            return part


def _render(value: Any) -> Iterable[Part]:
    if value is None:
        return (TextPart(DONE),)
    if isinstance(value, str):
        return (TextPart(value),)
    if isinstance(value, get_args(Part)):
        return (value,)
    if isinstance(value, list | tuple) and value and any(isinstance(one, get_args(Part)) for one in value):
        return [part for one in value for part in _render(one)]
    return (TextPart(_json(value)),)


def _json(value: Any) -> str:
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=_encode_other).decode()
    except UnicodeEncodeError:  # half a character, somewhere inside: as an escape it can be told
        import json

        return json.dumps(value, separators=(",", ":"), default=_encode_other)


def _encode_other(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)  # a pydantic model, without importing pydantic
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
