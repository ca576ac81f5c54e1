"""The one message model: a message is a role and its parts, and a tool call is a part like any other.

`message.tool_calls`, `message.text` and `message.tool_results` are views of the parts: there is no second place
where a call could be forgotten. Messages are values: `with_…` methods and `dataclasses.replace` make new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from isthmus.tools.calls import ToolCall

Role = Literal["system", "developer", "user", "assistant", "tool"]
ResultStatus = Literal["ok", "error", "invalid_arguments", "not_found", "timeout", "cancelled", "denied", "skipped"]


@dataclass(frozen=True, slots=True)
class TextPart:
    text: str
    annotations: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image by address: `https://…`, or a `data:` URL (`ImagePart.from_bytes` makes one)."""

    url: str
    detail: str = ""

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str = "image/png", detail: str = "") -> ImagePart:
        return cls(_data_url(data, media_type), detail)


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """A file, by address or by content (`data:` URL)."""

    name: str = ""
    url: str = ""
    data: str = ""

    @classmethod
    def from_bytes(cls, name: str, data: bytes, media_type: str = "application/pdf") -> DocumentPart:
        return cls(name, data=_data_url(data, media_type))


@dataclass(frozen=True, slots=True)
class CodePart:
    """Source code: sent as a fenced block."""

    code: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """What the model thought before it spoke; `item` is its wire form, which goes back unchanged."""

    text: str = ""
    item: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RefusalPart:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCallPart:
    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolResultPart:
    """What the model sees of a tool's result."""

    call_id: str
    name: str
    content: tuple[Part, ...] = ()
    status: ResultStatus = "ok"


@dataclass(frozen=True, slots=True)
class OpaquePart:
    """An item that we do not know: kept whole, and sent back as it came."""

    item: Mapping[str, Any]


Part = (
    TextPart
    | ImagePart
    | DocumentPart
    | CodePart
    | ThinkingPart
    | RefusalPart
    | ToolCallPart
    | ToolResultPart
    | OpaquePart
)


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: tuple[Part, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Your own facts; never sent."""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part.call for part in self.content if isinstance(part, ToolCallPart))

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        return tuple(part for part in self.content if isinstance(part, ToolResultPart))

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.content if isinstance(part, TextPart))

    @property
    def thinking(self) -> str:
        return "".join(part.text for part in self.content if isinstance(part, ThinkingPart))

    @property
    def refusal(self) -> str | None:
        words = [part.text for part in self.content if isinstance(part, RefusalPart)]
        return "".join(words) if words else None


Content = str | Part | Iterable[str | Part]


def system(content: Content) -> Message:
    return Message("system", as_parts(content))


def user(content: Content) -> Message:
    """`user("What is this?")`, or text with pictures: `user(["What is this?", ImagePart("https://…")])`."""
    return Message("user", as_parts(content))


def assistant(content: Content = (), *, calls: Iterable[ToolCall] = ()) -> Message:
    return Message("assistant", (*as_parts(content), *(ToolCallPart(call) for call in calls)))


def as_parts(content: Content) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    if isinstance(content, Iterable):
        return tuple(TextPart(part) if isinstance(part, str) else part for part in content)
    return (content,)


def _data_url(data: bytes, media_type: str) -> str:
    import base64

    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
