"""The whole decision about one request, frozen: made by `plan`, carried out by dialects, assembler and turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from isthmus.bridge.capabilities import ProviderCapabilities, ReplyRules
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityDiagnostic, CompatibilityPlan
from isthmus.bridge.types.client import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.contract import OutputContract
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


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided about one request, for one target."""

    target: Target
    compatibility: CompatibilityPlan
    tools: ToolPlan
    contract: OutputContract
    body: JsonObject
    """The exact upstream body."""
    reply: ReplyRules
    echo: Echo
    """What the Response says about the request."""
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
    client: ClientProfile = ANY_CLIENT
    """Who asks, as far as it changes what is told."""

    @property
    def decisions(self) -> tuple[CompatibilityDecision, ...]:
        return self.compatibility.decisions

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        return self.compatibility.diagnostics
