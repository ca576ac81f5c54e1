"""The whole decision about one request, frozen: made by `plan`, carried out by dialects, assembler and turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.bounds import DEFAULT_BOUNDS, Bounds
from isthmus.bridge.capabilities import MessageRules, ProviderCapabilities, ReplyRules
from isthmus.bridge.deltas import SOME_STOP
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityDiagnostic, CompatibilityPlan
from isthmus.bridge.types.clients import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.managed import DEFAULT_TOOL_LIMITS, NOTHING_MANAGED, Managed, Output, ToolLimits
from isthmus.bridge.types.tools import ToolIdentity, ToolPlan
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import Echo


class Host(msgspec.Struct, frozen=True):
    """What surrounds the bridge: the planner is told, it never guesses. A gateway with a store honours `metadata`,
    `store`, `previous_response_id` and so on by itself; a bare library call honours none of them."""

    honours: frozenset[str] = frozenset()
    """Parameters that are kept by the host and not sent upstream; the other gateway-owned ones are ignored."""
    strict: bool = False
    """Strict mode: nothing is degraded or ignored; what cannot be had exactly is rejected."""
    repair_budget: int = 1
    """How often the model may be asked again when its answer breaks a binding output contract."""
    bounds: Bounds = DEFAULT_BOUNDS
    """How large the schemas of a request may be."""
    remembers: bool = False
    """Whether what is not stored is known to the next turn all the same: by the connection that it comes over."""
    managed: Managed = NOTHING_MANAGED
    """Tools of the request that run here."""
    limits: ToolLimits = DEFAULT_TOOL_LIMITS
    """How much these may take."""


LIBRARY: Final = Host()


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a server taught us about one model: a field of our requests that it refused by name."""

    provider: str
    model: str
    parameter: str
    """The upstream field: `tool_choice`, `parallel_tool_calls` or `response_format`."""
    value: str = ""
    """The kind of value that was refused (`required`, `json_schema` …), where the field has kinds."""
    learned_at: float = 0.0


Mode = Literal["none", "native", "json_object", "prompt"]


class OutputContract(msgspec.Struct, frozen=True):
    """What was promised about the answer's text: made by `contract/planner`, read to the end."""

    requested: str = "text"
    mode: Mode = "none"
    send: JsonObject | None = None
    """The format for the provider, in neutral shape: `{"type": "json_object"}`, or `json_schema` with `name`,
    `description`, `schema` and `strict` beside it (those that were given); each dialect spells it its own way."""
    instruction: str = ""
    schema: JsonObject | bool | None = None
    """The client's own schema, which answers are checked against."""
    strict: bool = False
    requires_valid_json: bool = False
    """Binding: an answer that does not fit fails the response (after the budget for asking again)."""
    held: bool = False
    """Whether the text is kept back in a stream until it was checked, because it may yet be cleaned or asked for
    again. Only a held text may be replaced by `ContractCheck.text`: what a client has seen stays as it was."""
    reminder: str = ""
    """Words that go with asking again: where the server may have kept the format from the model."""
    name: str = ""
    canonical: bytes = b""
    """The schema in canonical text: what is compiled, and what a verdict about it is remembered by."""
    max_regex: int = DEFAULT_BOUNDS.max_regex


NO_CONTRACT: Final = OutputContract()


class Chosen(msgspec.Struct, frozen=True):
    """Why a target was taken where a name stands for several."""

    name: str
    by: str
    reason: str
    resting: bool = False
    """Whether it was taken although it is left alone just now: so are all."""


class Target(msgspec.Struct, frozen=True):
    provider: str
    model: str
    capabilities: ProviderCapabilities
    alias: str | None = None
    lessons: tuple[Lesson, ...] = ()
    """What the server has taught us about the model; the capabilities know it already."""
    choice: Chosen | None = None


class Progress(msgspec.Struct, frozen=True):
    """How far a response has come when the model is asked once more: what it said, and what came of its calls."""

    said: Sequence[Mapping[str, Any]] = ()
    """The items so far."""
    results: Mapping[str, Output] = {}
    """What the model is told of calls that ran here, by the id of their item."""
    searches: int = 0
    """How often it has looked for deferred tools."""
    rounds: int = 0
    """How often it was asked again with what tools found that run here."""
    spent: bool = False
    """Whether it has to answer without these from now on."""
    most: int | None = None
    """Tokens that are left of `max_output_tokens`."""


BEGINNING: Final = Progress()


class Approved(msgspec.Struct, frozen=True):
    """A call that the user has approved, to be carried out before the model is asked."""

    request_id: str
    identity: ToolIdentity
    arguments: str


@dataclass(frozen=True, slots=True)
class Compaction:
    """The answer to this plan is a summary: it is sealed in an item of its own, and not told."""

    then: Callable[[JsonObject | None], Plan] | None = None
    """The plan that follows, given the item; `None` in its place where the model wrote none."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything decided about one request, for one target. What a dialect's `write` is handed has no body yet:
    a `msgspec` struct, because it is made twice for every request, and a dataclass takes ten times as long."""

    target: Target
    compatibility: CompatibilityPlan
    tools: ToolPlan
    contract: OutputContract
    rules: MessageRules
    reply: ReplyRules
    echo: Echo
    """What the Response says about the request."""
    instructions: str = ""
    extra_body: Mapping[str, Any] = msgspec.field(default_factory=dict)
    body: JsonObject = msgspec.field(default_factory=dict)
    stream: bool = False
    generates: bool = True
    """Whether the model is asked at all: a client may send its input ahead, and ask when it continues that response."""
    repair_budget: int = 0
    taken_call_ids: frozenset[str] = frozenset()
    """Call ids that the conversation already uses: some vendors count from `call_0` in every turn."""
    seals_reasoning: bool = False
    """Whether reasoning items carry our envelope: for clients that store nothing here, and for vendor state."""
    reasoning_as: Literal["text", "summary"] = "text"
    """Where the model's thinking is shown: a client that asks for summaries (Codex) looks nowhere else."""
    leaks: Mapping[str, JsonObject | None] | None = None
    """Tools whose calls may leak into the text as markup, with their schemas; `None`: text is text."""
    after_tools: Callable[[Progress], Plan] | None = None
    """The plan that follows what was said and found so far: the same request, with all of it. `None`: nothing of it
    runs here."""
    approved: tuple[Approved, ...] = ()
    limits: ToolLimits = DEFAULT_TOOL_LIMITS
    """How much the tools may take that run here."""
    max_tool_calls: int | None = None
    """How many of their calls are carried out in one response."""
    tells_sources: bool = False
    """Whether the client wants to know which pages a search found."""
    compaction: Compaction | None = None
    steers: bool = True
    """Whether the answer may be ended between two of its items, to go on from there with more of the user's words."""
    client: ClientProfile = ANY_CLIENT
    size: int = 0
    """Bytes of a large request, with all that it leads to (`is_heavy`): what is done with it is done aside. Else 0."""

    @property
    def preamble(self) -> str:
        """Words that the model must be told besides the client's own: of the tool choice, of the format."""
        return "\n\n".join(words for words in (self.tools.choice.instruction, self.contract.instruction) if words)

    @property
    def output_limit(self) -> int | None:
        """The most tokens that the upstream was asked to answer with; `None`: as many as it likes."""
        limit = self.compatibility.decision("max_output_tokens")
        return limit.effective_value if limit is not None and limit.sends else None

    def met_stop(self, told: str | None) -> str | None:
        """The stop sequence of the request that ended the answer, by what the provider told. A server also stops at
        words of its own, and that is an end like any other; one that only says that a sequence was met names it where
        there was one to meet."""
        if told is None:
            return None
        asked = self.compatibility.decision("stop")
        value = asked.effective_value if asked is not None and asked.sends else None
        stops = [value] if isinstance(value, str) else value or []
        if told in stops:
            return told
        return stops[0] if told == SOME_STOP and len(stops) == 1 else None

    @property
    def decisions(self) -> tuple[CompatibilityDecision, ...]:
        return self.compatibility.decisions

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        return self.compatibility.diagnostics


class Written(msgspec.Struct, frozen=True):
    """What a dialect made of a plan: the body, and what had to be decided about messages on the way."""

    body: JsonObject
    decisions: tuple[CompatibilityDecision, ...] = ()
