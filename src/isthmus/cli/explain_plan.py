"""One request, planned for one target as the gateway would: what `explain` has to show.

In: a request body and a provider. Out: an `Explained`, whether the request can be sent or is refused. Nothing is
sent and nothing is asked of the network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from isthmus.bridge.capabilities import Dialect
from isthmus.bridge.choose import tell_choice
from isthmus.bridge.compat.planner import plan_bridge_compatibility
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityDiagnostic, apply_strict, diagnose
from isthmus.bridge.doors.chat.read import ChatRequest, receive_chat_request, reword
from isthmus.bridge.doors.messages.read import MessagesRequest, receive_messages_request
from isthmus.bridge.fit import fit_request
from isthmus.bridge.jobs import admit_here
from isthmus.bridge.lessons import learn, tell_lessons
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.bridge.parse import Request, parse_request
from isthmus.bridge.resolve import split_reference
from isthmus.bridge.tools.catalog import build_tool_catalog
from isthmus.bridge.tools.credentials import showable_body
from isthmus.bridge.tools.survey import plan_tools, survey_tools
from isthmus.bridge.types.clients import ANY_CLIENT, MESSAGES, ClientProfile
from isthmus.bridge.types.managed import NOTHING_MANAGED, Managed
from isthmus.bridge.types.plan import Chosen, Host, Lesson, OutputContract, Plan, Target
from isthmus.bridge.types.tools import CatalogTool, ToolIdentity
from isthmus.errors import ConfigError, RequestRefused
from isthmus.gateway.attempts import HONOURED
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.dialects import capabilities_for

_NOBODYS: Final = bytes(32)
"""A gateway seals what it compacts; here nothing is ever sealed or opened with it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request in whichever language it was written."""

    request: Request
    door: ChatRequest | MessagesRequest | None = None
    history: tuple[JsonObject, ...] = ()
    """Items of earlier turns that stand before its own."""
    caller: ClientProfile | None = None
    """Who asked, where that is known."""
    listed: tuple[JsonObject, ...] = ()
    """What MCP servers had listed when it was answered, as items."""
    owner: str = ""
    envelope_key: bytes = _NOBODYS
    hooked: tuple[CompatibilityDecision, ...] = ()
    """What the operator's hooks have changed of it."""

    def path(self, path: str) -> str:
        """A planner's path in the words of whoever wrote the request."""
        return self.door.path(path) if self.door is not None else path

    @property
    def noted(self) -> tuple[CompatibilityDecision, ...]:
        """What was decided while it was read."""
        read = self.door.decisions if isinstance(self.door, MessagesRequest) else ()
        return (*read, *self.hooked)

    @property
    def client(self) -> ClientProfile:
        if self.caller is not None:
            return self.caller
        return MESSAGES if isinstance(self.door, MessagesRequest) else ANY_CLIENT


@dataclass(frozen=True, slots=True)
class ToolFate:
    """One tool on its way: as it was asked for, as the provider sees it, and why."""

    source: CatalogTool
    path: str
    """Where it stands, in the words of the caller."""
    decision: CompatibilityDecision
    identity: ToolIdentity | None
    sent: bool
    held_back: bool = False
    """Whether it could be sent, but the tool choice leaves it out this time."""


@dataclass(frozen=True, slots=True)
class Explained:
    asked: Asked
    target: Target
    decisions: tuple[CompatibilityDecision, ...]
    """Paths in the words of the caller. Of a refused request: all that could be decided."""
    tools: tuple[ToolFate, ...]
    plan: Plan | None
    refusal: RequestRefused | None

    @property
    def diagnostics(self) -> tuple[CompatibilityDiagnostic, ...]:
        found = (diagnose(decision) for decision in self.decisions)
        return tuple(diagnostic for diagnostic in found if diagnostic is not None)

    @property
    def body(self) -> JsonObject | None:
        """What would be sent, as it may be shown: without the credentials of the client's MCP servers."""
        return showable_body(self.plan.body) if self.plan is not None else None

    @property
    def rejected(self) -> tuple[CompatibilityDecision, ...]:
        return tuple(decision for decision in self.decisions if decision.action == "rejected")

    def to_json(self) -> JsonObject:
        contract = self.plan.contract if self.plan is not None else None
        shown: JsonObject = {
            "provider": self.target.provider,
            "model": self.target.model,
            "decisions": [_decision_json(decision) for decision in self.decisions],
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
            "tools": [_tool_json(tool) for tool in self.tools],
            "contract": _contract_json(contract) if contract is not None else None,
            "body": self.body,
        }
        if self.refusal is not None:
            shown["refused"] = refusal_json(self.refusal, self.asked)
        return shown


def ask(
    body: JsonObject, *, chat: bool = False, messages: bool = False, limits: RequestLimits = DEFAULT_LIMITS
) -> Asked:
    """Check a request; raises `RequestRefused` where every provider would get the same 400."""
    if not chat and not messages:
        return Asked(parse_request(body, limits))
    received: ChatRequest | MessagesRequest
    received = receive_messages_request(body, limits) if messages else receive_chat_request(body, limits)
    return Asked(received.request, received)


def choose_model(asked: Asked, provider: Provider, model: str = "", known_as: str = "") -> str:
    """The model to plan for: as told, as the request says if the provider knows it, else the provider's default.

    `known_as`: the provider's name in the configuration.
    """
    named = str(asked.request.body.get("model") or "")
    if model:
        return model
    sides = split_reference(named)
    if sides is not None and sides[0] in (provider.name, *provider.aliases, known_as):
        return sides[1]
    if any(entry.matches(named) for entry in provider.models if entry.pattern != "*"):
        return named
    found = provider.default_model or named
    if not found:
        raise ConfigError(f"provider `{provider.name}` has no default model and the request names none; add `--model`")
    return found


def explain(
    asked: Asked,
    provider: Provider,
    model: str,
    *,
    strict: bool = False,
    name: str = "",
    dialect: Dialect | None = None,
    lessons: Sequence[Lesson] = (),
    managed: Managed = NOTHING_MANAGED,
    choice: Chosen | None = None,
) -> Explained:
    """Plan the request; a refusal is part of the answer.

    `name`, `dialect` and `lessons` are those of a configured provider: what its server has taught the gateway counts.
    `managed` are the tools of the request that the gateway would run itself. `choice`: why this target of several.
    """
    facts = capabilities_for(provider, model, dialect)
    target = learn(Target(name or provider.name, model, facts, choice=choice), lessons)
    host = Host(HONOURED, strict, managed=managed)
    try:
        noted = (*asked.noted, *tell_lessons(asked.request.body, target), *tell_choice(target))
        plan = fit_request(
            asked.request,
            target,
            host,
            history=asked.history,
            envelope_key=asked.envelope_key,
            owner=asked.owner,
            noted=noted,
            client=asked.client,
        )
        admit_here(plan.contract)
    except RequestRefused as error:
        return _refused(asked, target, host, error)
    decisions = plan.decisions
    tools = _follow_tools(asked, decisions, tuple(plan.tools.identities), plan)
    return Explained(asked, target, reworded(asked, decisions), tools, plan, None)


def refusal_json(error: RequestRefused, asked: Asked | None = None) -> JsonObject:
    told = reword(error, asked.path) if asked is not None and asked.door is not None else error
    return {"code": told.code, "param": told.param, "message": told.message}


def _refused(asked: Asked, target: Target, host: Host, error: RequestRefused) -> Explained:
    """What can be said of a request that stops on its way: the first stages decide without it, where they can."""
    request, capabilities = asked.request, target.capabilities
    body = request.body
    decided: list[CompatibilityDecision] = [*asked.noted]
    identities: list[ToolIdentity] = []
    try:
        # Too many tools are refused before anything else is decided; here the rest is told all the same.
        any_number = replace(capabilities, tools=replace(capabilities.tools, max=None))
        survey = survey_tools(
            body.get("tools"), request.items, body.get("tool_choice"), any_number, managed=host.managed
        )
        identities += survey.identities
        decided += plan_bridge_compatibility(request, capabilities, host, survey=survey).decisions
        decided += plan_tools(replace(survey, most=capabilities.tools.max)).decisions
    except RequestRefused:
        pass  # it is the refusal itself: too many tools, or two that cannot be told apart
    decided = list(apply_strict(tuple(decided), host.strict))
    rejecting = [_from_diagnostic(said) for said in error.metadata.get("diagnostics", ())]
    named = {decision.path for decision in rejecting}
    decisions = (*rejecting, *(d for d in decided if d.path not in named))
    fates = _follow_tools(asked, decisions, identities, None)
    return Explained(asked, target, reworded(asked, decisions), fates, None, error)


def _from_diagnostic(said: JsonObject) -> CompatibilityDecision:
    return CompatibilityDecision(
        said["path"], said["action"], said["message"], code=said["code"], metadata=said.get("metadata", {})
    )


def _follow_tools(
    asked: Asked,
    decisions: Sequence[CompatibilityDecision],
    identities: Sequence[ToolIdentity],
    plan: Plan | None,
) -> tuple[ToolFate, ...]:
    made = {decision.path: decision for decision in decisions}
    known = {(it.requested_type, it.namespace, it.requested_name, id(it.tool)): it for it in identities}
    here = {(it.requested_type, id(it.tool)): it for it in identities if it.managed not in (None, "mcp")}
    sent = {declaration.source.path for declaration in plan.tools.declarations} if plan is not None else set()
    fates = []
    catalog = build_tool_catalog(asked.request.body.get("tools"), asked.request.items)
    for source in (part for tool in catalog for part in _parts(tool, identities)):
        if source.path in made:
            identity = known.get((source.type, source.namespace, source.name, id(source.tool)))
            identity = identity or here.get((source.type, id(source.tool)))
            is_sent = source.path in sent
            held_back = plan is not None and identity is not None and not is_sent
            path = asked.path(source.path)
            fates.append(ToolFate(source, path, made[source.path], identity, is_sent, held_back))
    return tuple(fates)


def _parts(tool: CatalogTool, identities: Sequence[ToolIdentity]) -> list[CatalogTool]:
    """A tool; of an MCP server that is called from here, its tools one by one."""
    listed = [it for it in identities if it.managed == "mcp" and it.namespace == tool.name]
    if tool.type != "mcp" or not listed:
        return [tool]
    places = [(f"{tool.path}.tools[{index}]", it) for index, it in enumerate(listed)]
    return [CatalogTool(path, tool.type, it.requested_name, tool.name, it.tool) for path, it in places]


def reworded(asked: Asked, decisions: Sequence[CompatibilityDecision]) -> tuple[CompatibilityDecision, ...]:
    if asked.door is None:
        return tuple(decisions)
    return tuple(replace(decision, path=asked.path(decision.path)) for decision in decisions)


def _decision_json(decision: CompatibilityDecision) -> JsonObject:
    return {
        "path": decision.path,
        "action": decision.action,
        "reason": decision.reason,
        "effective_value": decision.effective_value,
        "sends": dict(decision.sends),
        "code": decision.code,
        "metadata": dict(decision.metadata),
    }


def _tool_json(tool: ToolFate) -> JsonObject:
    identity = tool.identity
    return {
        "path": tool.path,
        "type": tool.source.type,
        "namespace": tool.source.namespace,
        "name": tool.source.name,
        "provider_type": identity.provider_type if identity is not None else None,
        "provider_name": identity.provider_name if identity is not None else None,
        "sent": tool.sent,
        "runs_here": identity is not None and identity.managed is not None,
        "action": tool.decision.action,
        "reason": tool.decision.reason,
    }


def _contract_json(contract: OutputContract) -> dict[str, Any]:
    return {
        "requested": contract.requested,
        "mode": contract.mode,
        "sends": contract.send,
        "instruction": contract.instruction,
        "schema": contract.schema,
        "strict": contract.strict,
        "binding": contract.requires_valid_json,
        "validated": is_validated(contract),
    }


def is_validated(contract: OutputContract) -> bool:
    """Whether the answer's text is read as JSON and checked before the client gets it."""
    return contract.mode != "none"


def is_item(path: str) -> bool:
    """Whether a path speaks of one input item, rather than of a field of the request."""
    return path.startswith(("input[", "messages["))
