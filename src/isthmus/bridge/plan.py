"""The whole decision about one request, made once and frozen: what is sent, why, and how to read the answer.

In: a request, its target and the host. Out: a `Plan`. Nothing that follows decides anything again:
the transport sends `body`, the decoder reads by `reply`, the assembler restores by `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import methodcaller
from typing import Any, Final, Protocol

from msgspec.structs import replace

from isthmus.bridge import diagnostics
from isthmus.bridge.capabilities import Dialect, MessageRules, ProviderCapabilities, ReplyRules
from isthmus.bridge.compat.planner import SHOWS_THINKING, apply_updates, plan_bridge_compatibility
from isthmus.bridge.contract.planner import plan_output_contract
from isthmus.bridge.diagnostics import CompatibilityDecision, CompatibilityPlan
from isthmus.bridge.dialects.chat import write as chat
from isthmus.bridge.doors.responses.echo import echo_request
from isthmus.bridge.history.managed import Here, read_approvals
from isthmus.bridge.history.normalise import normalise_history
from isthmus.bridge.history.parts import settle_marks
from isthmus.bridge.history.replay import remember, replays_reasoning, why_thinking_stops
from isthmus.bridge.parse import Request
from isthmus.bridge.tools.catalog import NAMED_TYPES
from isthmus.bridge.tools.managed import SOURCES, asked_by
from isthmus.bridge.tools.search import MAX_SEARCHES
from isthmus.bridge.tools.survey import plan_tools, survey_tools
from isthmus.bridge.types.clients import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.history import History
from isthmus.bridge.types.plan import BEGINNING, LIBRARY, Approved, Host, Plan, Progress, Target, Written
from isthmus.bridge.types.tools import ToolIdentityMap, ToolPlan
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.responses import CreateResponse

_call_id_of: Final = methodcaller("get", "call_id")


def plan_request(
    request: Request,
    target: Target,
    host: Host = LIBRARY,
    *,
    history: Sequence[JsonObject] = (),
    envelope_key: bytes | None = None,
    owner: str = "",
    noted: Sequence[CompatibilityDecision] = (),
    client: ClientProfile = ANY_CLIENT,
    progress: Progress = BEGINNING,
) -> Plan:
    """Decide everything; raises `RequestRefused` if one thing cannot be had at all.

    `history` are the items of earlier, stored turns; `noted` what the caller has decided already (a chat caller's
    translation, for example); `progress` says how far this response has come; `owner` is whose envelopes are opened.
    """

    def after_tools(progress: Progress) -> Plan:
        # Whatever strict mode refuses was refused before: what is told again, it does not judge again.
        body = _go_on_with(asked.body, progress)
        again = replace(asked, body=body, items=(*asked.items, *map(dict, progress.said)))
        following = plan_request(
            again,
            target,
            replace(host, strict=False),
            history=history,
            envelope_key=envelope_key,
            owner=owner,
            noted=noted,
            client=client,
            progress=progress,
        )
        return following if not host.strict else replace(following, leaks=None)

    capabilities, stored = target.capabilities, len(history)
    items = (*history, *request.items) if history else request.items
    asked, request = request, apply_updates(request, items)
    body = request.body
    survey = survey_tools(
        body.get("tools"),
        items,
        body.get("tool_choice"),
        capabilities,
        stored=stored,
        search=progress.searches < MAX_SEARCHES,
        managed=host.managed,
        spent=progress.spent,
    )
    here = Here(survey.managed, frozenset(survey.listings), progress.results)
    past = normalise_history(
        items,
        stored=stored,
        envelope_key=envelope_key,
        owner=owner,
        provider=target.provider,
        keeps=capabilities.messages.items,
        patient=survey.patient,
        continues=body.get("previous_response_id") is not None or body.get("conversation") is not None,
        here=here,
    )
    options = body.get("reasoning") or {}
    # A provider that can be told which earlier reasoning counts sees to it itself.
    context = None if "reasoning.context" in capabilities.parameters else options.get("context")
    past, rules = remember(past, capabilities.messages, context)
    compatibility = plan_bridge_compatibility(
        request,
        capabilities,
        host,
        survey=survey,
        history=history,
        replays_reasoning=replays_reasoning(past.turns, rules),
        thinking_stops=why_thinking_stops(past.turns, rules, target.model) if rules.needs_thoughts else "",
    )
    tools = plan_tools(survey, thinking=compatibility.thinking)
    as_summary = capabilities.dialect in SHOWS_THINKING and _wants_summary(options, client)
    plan = Plan(
        target=target,
        compatibility=compatibility,
        tools=tools,
        contract=plan_output_contract(
            request,
            compatibility,
            capabilities.response_formats,
            host.bounds,
            assumed="response_format" in capabilities.assumed,
        ),
        rules=rules,
        reply=capabilities.reply,
        echo=echo_request(asked, _as_asked(compatibility, asked, request)),
        instructions=body.get("instructions") or "",
        extra_body=capabilities.extra_body,
        stream=bool(body.get("stream")),
        generates=not _only_warms(body, capabilities),
        # A thread of Codex goes on by itself, and a summary in the middle would leave the words behind.
        steers=capabilities.dialect != "codex" and not body.get("context_management"),
        repair_budget=host.repair_budget,
        taken_call_ids=frozenset([id for id in map(_call_id_of, items) if isinstance(id, str) and id]),
        leaks=_leaks(tools, capabilities.reply, host.strict),
        seals_reasoning=envelope_key is not None and _seals(body, rules, host, as_summary),
        after_tools=after_tools if survey.deferred or here else None,
        approved=_find_approved(items, here, survey.identities) if here.labels else (),
        limits=host.limits,
        max_tool_calls=_most_calls(body, survey.identities) if here else None,
        tells_sources=client.shows_sources or SOURCES in (body.get("include") or ()),
        client=client,
        size=max(request.size, 1) if request.heavy else 0,
        reasoning_as="summary" if as_summary else "text",
    )
    written = _writer(capabilities.dialect).write(past, plan)
    allowed, held_back = diagnostics.apply_allow_list(written.body, capabilities.allow)
    about_items = settle_marks(past, rules)
    made = (*compatibility.decisions, *noted, *tools.decisions, *about_items, *written.decisions, *held_back)
    if client.needs_hosted_tools:
        made = diagnostics.apply_needs(made)
    decisions = diagnostics.apply_strict(made, host.strict)
    diagnostics.refuse_rejected(decisions)
    if not past.turns and not plan.instructions and plan.generates:
        # A model that is told nothing has nothing to answer; providers refuse an empty conversation, if they are kind.
        reason = "`input` is missing or empty; send a text, or a list of items"
        raise RequestRefused(reason, code="missing_required_parameter", param="input")
    compatibility = CompatibilityPlan(decisions, compatibility.thinking)
    return replace(plan, compatibility=compatibility, body=allowed)


def _only_warms(body: CreateResponse, capabilities: ProviderCapabilities) -> bool:
    """Whether the input is only sent ahead. A provider that has a cache to warm is asked to."""
    options = body.get("prompt_cache_options") or {}
    ahead = bool(options.get("prewarm")) and "prompt_cache_options" not in capabilities.parameters
    return body.get("generate") is False or ahead


def _go_on_with(body: CreateResponse, progress: Progress) -> CreateResponse:
    """The request as it goes on: a client that wants a tool called first has had it, and tokens that were written are
    gone."""
    if progress.most is not None:
        body = {**body, "max_output_tokens": progress.most}
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        nested = choice.get("allowed_tools")
        if not progress.rounds:
            return body
        return {**body, "tool_choice": {**choice, "mode": "auto"} | _in_auto_mode(nested)}
    kind = choice.get("type") if isinstance(choice, dict) else choice
    # What names a function or a custom tool is the client's own: it was not called, or the client would be asked.
    had = kind == "tool_search" or (progress.rounds > 0 and kind not in (None, "auto", "none", *NAMED_TYPES))
    return {**body, "tool_choice": "auto"} if had else body


def _in_auto_mode(nested: Any) -> JsonObject:
    return {"allowed_tools": {**nested, "mode": "auto"}} if isinstance(nested, dict) else {}


def _most_calls(body: CreateResponse, identities: ToolIdentityMap) -> int | None:
    """How many calls are carried out here: what the request says, and what it says of its search, if that is all."""
    said = [body.get("max_tool_calls")]
    kinds = {identity.managed for identity in identities if identity.managed is not None}
    if kinds == {"web_search"}:
        said += [identity.tool.get("max_uses") for identity in identities if identity.managed is not None]
    return min((most for most in said if isinstance(most, int) and not isinstance(most, bool)), default=None)


def _find_approved(items: Sequence[JsonObject], here: Here, identities: ToolIdentityMap) -> tuple[Approved, ...]:
    """Calls that the user has approved since: to be carried out first, where their tool is still offered."""
    found: list[Approved] = []
    for asked in read_approvals(items, here).pending:
        name, label, arguments = asked_by(asked)
        identity = identities.by_request(name, label)
        if identity is not None and identity.managed == "mcp":
            found.append(Approved(asked["id"], identity, arguments))
    return tuple(found)


def ask_again(plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The plan's body with failed answers, and the words that ask for better ones, behind it."""
    return _writer(plan.target.capabilities.dialect).again(plan, said)


def go_on(plan: Plan, said: Sequence[Any]) -> JsonObject:
    """The plan's body with the beginning of a turn behind it that the provider itself interrupted (Messages only)."""
    from isthmus.bridge.dialects.messages.write import go_on

    return go_on(plan, said)


class _Writer(Protocol):
    """A dialect, as far as requests go."""

    def write(self, history: History, plan: Plan) -> Written: ...

    def again(self, plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject: ...


@cache
def _writer(dialect: Dialect) -> _Writer:
    """Most gateways speak Chat Completions, and few all of them: another one is loaded with the first request in it."""
    match dialect:
        case "chat":
            return chat
        case "responses":
            from isthmus.bridge.dialects.responses import write as responses

            return responses
        case "messages":
            from isthmus.bridge.dialects.messages import write as messages

            return messages
        case "codex":
            from isthmus.bridge.dialects.codex import write as codex

            return codex


def _leaks(tools: ToolPlan, reply: ReplyRules, strict: bool) -> Mapping[str, JsonObject | None] | None:
    """Looked for only where the model's data says so and tools were offered; in strict mode text stays what it is."""
    if not reply.leaked_tools or strict:
        return None
    functions = {
        declared.identity.provider_name: declared.parameters
        for declared in tools.declarations
        if declared.identity is not None and declared.identity.provider_type == "function"
    }
    return functions or None


def _as_asked(made: CompatibilityPlan, asked: Request, counted: Request) -> CompatibilityPlan:
    """A Response shows the request's own effort, also where an item changed it since."""
    if asked is counted:
        return made
    return CompatibilityPlan(tuple(one for one in made.decisions if one.path != "reasoning.effort"), made.thinking)


def _wants_summary(options: Mapping[str, Any], client: ClientProfile) -> bool:
    """What the request says counts, `none` (Codex's word) included; else what its client can show."""
    asked = options.get("summary") or options.get("generate_summary")
    return asked != "none" if asked else client.reads_summaries


def _seals(body: Mapping[str, Any], rules: MessageRules, host: Host, as_summary: bool) -> bool:
    """Asked for by a client that stores nothing here; else needed where kept turns must give vendor state back, or
    where thinking that has to go back is told as a summary: nobody could tell it from one."""
    if "reasoning.encrypted_content" in (body.get("include") or ()):
        return True
    if as_summary and rules.replay != "never":
        return True
    kept = body.get("store") is not False or host.remembers
    return kept and bool(rules.replay_extras or rules.replay_details)
