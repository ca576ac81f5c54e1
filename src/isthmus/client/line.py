"""The client's doors: a `Line` to the models of one profile, and `Connect`, which knows the line of every model name.

A line takes a Responses request and gives Responses events. Who is behind it (a provider in this process, a gateway
somewhere else, a script in a test) makes no difference to anything above.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from isthmus.bridge.capabilities import Cost
from isthmus.protocol.json import JsonObject

Batch = Sequence[Mapping[str, Any]]
"""Consecutive Responses events; the last one of an answer is `response.completed`, `.incomplete` or `.failed`."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known about a model. Unknown models can be used as well: then most of this is empty."""

    name: str
    """The name to ask for: `provider/model`."""
    provider: str
    model: str
    title: str = ""
    context_window: int | None = None
    max_output_tokens: int | None = None
    input: tuple[str, ...] = ("text",)
    reasoning_efforts: tuple[str, ...] = ()
    thinks: bool = False
    formats: tuple[str, ...] = ()
    cost: Cost | None = None
    known: bool = True
    """Whether somebody wrote it down, or it is only a name."""
    extra: Mapping[str, Any] = field(default_factory=dict)


class Line(Protocol):
    @property
    def provider(self) -> str:
        """The name to blame in errors."""

    @property
    def credential(self) -> str:
        """A hash of the key it uses: lines with the same one share their rate limit."""

    def events(self, request: JsonObject) -> AsyncGenerator[Batch, None]:
        """Send a request; raises `RequestRefused` or `UpstreamFailed`. Closing the generator closes the connection."""

    def describe(self, model: str) -> ModelInfo: ...

    def cost(self, model: str, facts: Mapping[str, Any]) -> Cost | None:
        """The prices of a model; `facts` are what the response says about who answered (`isthmus`)."""

    async def models(self) -> list[ModelInfo]: ...

    async def aclose(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model name leads: a line, and what the model is called there."""

    line: Line
    model: str


class Connect(Protocol):
    async def find(self, model: str | None) -> Route:
        """The route of a model name, `None` for the default one; refuses names that lead nowhere."""

    async def lines(self) -> list[Line]:
        """Every line that is set up."""

    async def aclose(self) -> None: ...
