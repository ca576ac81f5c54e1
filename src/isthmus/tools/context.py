"""What a tool may know and say: its context, and the ways to end otherwise than by returning a value."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from isthmus.tools.calls import ToolCall
from isthmus.tools.messages import Message, Part

Deps = TypeVar("Deps")


@dataclass(frozen=True, slots=True)
class ToolContext(Generic[Deps]):
    """Given to tools that ask for it: annotate the first parameter as `ctx: ToolContext[YourDeps]`."""

    call: ToolCall
    deps: Deps
    """Whatever was passed as `deps=` to `run` or `execute`: a database, a session, a user."""
    messages: tuple[Message, ...] = ()
    """The conversation so far."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when nobody waits any more (timeout, cancel): a tool in a thread cannot be stopped, it can look here."""


@dataclass(frozen=True, slots=True)
class ToolReturn:
    """A result with two sides: `value` for your program, `content` for the model."""

    value: Any
    content: str | Part | Iterable[str | Part]


class ToolFailed(Exception):
    """Raise it in a tool: the model reads exactly these words, and may try something else."""


class StopRun(Exception):
    """Raise it in a tool: the run ends with this value as its output."""

    def __init__(self, value: Any = None) -> None:
        super().__init__(value)
        self.value = value


@dataclass(frozen=True, slots=True)
class Approve:
    """The call may be carried out."""


@dataclass(frozen=True, slots=True)
class Deny:
    """The call may not; the model is told why."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Provide:
    """The result of a call that was carried out elsewhere."""

    value: Any


Approval = Approve | Deny | Provide | bool
