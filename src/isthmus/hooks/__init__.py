"""What an operator's own code is asked on the way of every request: for redaction, guardrails, and words of their own.

A hook is any object with one or more of three methods, each plain or `async`:

    before_plan(request, context)          the request as the Responses API spells it, whichever door it came through
    before_send(body, sending, context)    the very JSON that a provider is about to get
    after_reply(response, context)         the finished Response, before it is kept and told

Each gets a copy that it may change in place, or gives another one back; `None` means the one that it was given. A
`Refuse`, given back or raised, ends the request with the hook's words. Only this file is for hooks to import.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from isthmus.protocol.json import JsonObject as JsonObject

Kind = Literal["response", "embeddings", "images"]
Stage = Literal["before_plan", "before_send", "after_reply"]


class Refuse(Exception):
    """This request ends here: the client gets a 400 (`refused_by_hook`) with these words, or the failed end of a stream
    that has begun."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        """`param`: the field of the request that it is about."""
        super().__init__(message)
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True)
class Context:
    """Whose request it is. One for each response: all calls of a hook for it get the same `state`."""

    id: str
    """The response's id, before it is told to anybody."""
    kind: Kind = "response"
    owner: str = ""
    key: str = ""
    """The id of the key that was shown, never the key."""
    team: str = ""
    request: str = ""
    """The id of the HTTP request, as it stands in the log."""
    model: str = ""
    """The model as the client named it."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The request's own `metadata`."""
    streamed: bool = False
    """Whether the client reads the answer as it is written."""
    state: dict[str, Any] = field(default_factory=dict)
    """The hook's own notes about this response, kept until it has ended: what a placeholder stands for, say."""


@dataclass(frozen=True, slots=True)
class Sending:
    """What is known of an asking: a response may take several."""

    provider: str
    model: str
    """As the provider knows it."""
    dialect: str
    """How the body is spelled: `chat`, `responses`, `messages` or `codex`; of what is no response, its kind."""
    why: str = "first"
    """`first`, `repair` (the answer broke its format), `tool`, `search`, `compaction`, `pause`."""
    attempt: int = 1
    """How many models were tried, this one included."""


Changed = JsonObject | Refuse | None


class BeforePlan(Protocol):
    def before_plan(self, request: JsonObject, context: Context) -> Changed | Awaitable[Changed]: ...


class BeforeSend(Protocol):
    def before_send(self, body: JsonObject, sending: Sending, context: Context) -> Changed | Awaitable[Changed]: ...


class AfterReply(Protocol):
    def after_reply(self, response: JsonObject, context: Context) -> Changed | Awaitable[Changed]: ...


class HoldsStreams(AfterReply, Protocol):
    """One whose `after_reply` is also waited for where the client reads a stream: nothing of the answer is told before.
    Without it, a stream is looked at when its end is there, and cannot be changed any more."""

    holds_streams: Literal[True]


Hook = BeforePlan | BeforeSend | AfterReply
