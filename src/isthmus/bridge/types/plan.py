"""The whole decision about one request, frozen: made by `plan`, carried out by dialects, assembler and turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from isthmus.bridge.capabilities import MessageRules, ProviderCapabilities, ReplyRules
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityDiagnostic, CompatibilityPlan
from isthmus.bridge.types.client import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.contract import OutputContract
from isthmus.bridge.types.lesson import Lesson
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import Echo


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: the resolved model, with its capabilities."""

    provider: str
    model: str
    capabilities: ProviderCapabilities
    alias: str | None = None
    lessons: tuple[Lesson, ...] = ()
    """What the server has taught us about the model; the capabilities know it already."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decided about one request, for one target. What a dialect's `write` is handed has no body yet:
    a `msgspec` struct, because it is made twice for every request, and a dataclass takes ten times as long."""

    target: Target
    compatibility: CompatibilityPlan
    tools: ToolPlan
    contract: OutputContract
    rules: MessageRules
    """How the dialect must write messages."""
    reply: ReplyRules
    """How the dialect must read the answer."""
    echo: Echo
    """What the Response says about the request."""
    instructions: str = ""
    extra_body: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Fields that every body to this target carries."""
    body: JsonObject = msgspec.field(default_factory=dict)
    """The exact upstream body."""
    stream: bool = False
    repair_budget: int = 0
    taken_call_ids: frozenset[str] = frozenset()
    """Call ids that the conversation already uses: some vendors count from `call_0` in every turn."""
    seals_reasoning: bool = False
    """Whether reasoning items carry our envelope: for clients that store nothing here, and for vendor state."""
    reasoning_as: Literal["text", "summary"] = "text"
    """Where the model's thinking is shown: a client that asks for summaries (Codex) looks nowhere else."""

    leaks: Mapping[str, JsonObject | None] | None = None
    """Tools whose calls may leak into the text as markup, with their schemas; `None`: text is text."""
    after_search: Callable[[Sequence[Mapping[str, Any]], int], Plan] | None = None
    """The plan that follows what was said so far and this many searches: the same request, with what was found."""
    client: ClientProfile = ANY_CLIENT
    """Who asks, as far as it changes what is told."""

    @property
    def preamble(self) -> str:
        """Words that the model must be told besides the client's own: of the tool choice, of the format."""
        return "\n\n".join(words for words in (self.tools.choice.instruction, self.contract.instruction) if words)

    @property
    def decisions(self) -> tuple[CompatibilityDecision, ...]:
        return self.compatibility.decisions

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        return self.compatibility.diagnostics


@dataclass(frozen=True, slots=True)
class Written:
    """What a dialect made of a plan: the body, and what had to be decided about messages on the way."""

    body: JsonObject
    decisions: tuple[CompatibilityDecision, ...] = ()
