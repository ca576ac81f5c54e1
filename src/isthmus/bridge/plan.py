"""The whole decision about one request, made once and frozen: what is sent, why, and how to read the answer.

In: a request, its target and the host. Out: a `Plan`. Nothing that follows decides anything again:
the transport sends `body`, the decoder reads by `reply`, the assembler restores by `tools`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from isthmus.bridge.capabilities import MessageRules, ReplyRules
from isthmus.bridge.compat import apply_allow_list, apply_strict, plan_bridge_compatibility
from isthmus.bridge.contract import plan_output_contract
from isthmus.bridge.diagnostics import (
    CompatibilityDecision,
    CompatibilityPlan,
    refuse_rejected,
)
from isthmus.bridge.dialects.chat.messages import build_messages
from isthmus.bridge.dialects.chat.write import ask_again_chat, build_chat_request
from isthmus.bridge.dialects.codex.write import ask_again_codex, build_codex_request
from isthmus.bridge.dialects.responses.write import ask_again_responses, build_responses_request
from isthmus.bridge.doors.responses.echo import echo_request
from isthmus.bridge.history import normalise_history
from isthmus.bridge.host import LIBRARY, Host
from isthmus.bridge.parse import Request
from isthmus.bridge.tools.plan import plan_tools
from isthmus.bridge.types.client import ANY_CLIENT, ClientProfile
from isthmus.bridge.types.plan import Plan, Target
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.json import JsonObject


def plan_request(
    request: Request,
    target: Target,
    host: Host = LIBRARY,
    *,
    history: Sequence[JsonObject] = (),
    envelope_key: bytes | None = None,
    noted: Sequence[CompatibilityDecision] = (),
    client: ClientProfile = ANY_CLIENT,
) -> Plan:
    """Decide everything; raises `RequestRefused` if one thing cannot be had at all.

    `history` are the items of earlier, stored turns; `noted` are decisions that the caller has already
    made about the request (a chat caller's translation, for example); `client` is who asks.
    """
    capabilities = target.capabilities
    items = (*history, *request.items) if history else request.items
    replays = capabilities.messages.replay != "never" and any(item["type"] == "reasoning" for item in items)
    compatibility = plan_bridge_compatibility(request, capabilities, host, history=history, replays_reasoning=replays)
    body = request.body
    tools = plan_tools(body.get("tools"), items, body.get("tool_choice"), capabilities, thinking=compatibility.thinking)
    contract = plan_output_contract(request, compatibility, capabilities.response_formats, host.bounds)
    turns = normalise_history(items, stored=len(history), envelope_key=envelope_key, provider=target.provider)
    messages = build_messages(
        turns,
        rules=capabilities.messages,
        identities=tools.identities,
        instructions=body.get("instructions"),
        preamble="\n\n".join(words for words in (tools.instruction, contract.instruction) if words),
        thinking=compatibility.thinking,
    )
    made = (*noted, *tools.decisions, *turns.decisions, *messages.decisions)
    decisions = (*compatibility.decisions, *apply_strict(made, host.strict))
    refuse_rejected(decisions)
    build = _BUILDERS[capabilities.dialect]
    built = build(target.model, messages.messages, tools, contract, compatibility.decisions, capabilities.extra_body)
    allowed, held_back = apply_allow_list(built, capabilities.allow)
    return Plan(
        target=target,
        compatibility=CompatibilityPlan((*decisions, *held_back), compatibility.thinking),
        tools=tools,
        contract=contract,
        body=allowed,
        reply=capabilities.reply,
        echo=echo_request(request),
        stream=bool(body.get("stream")),
        repair_budget=host.repair_budget,
        taken_call_ids=frozenset(
            item["call_id"] for item in items if isinstance(item.get("call_id"), str) and item["call_id"]
        ),
        leaks=_leaks(tools, capabilities.reply, host.strict),
        seals_reasoning=envelope_key is not None and _seals(body, capabilities.messages),
        client=client,
        reasoning_as="summary" if capabilities.dialect == "chat" and _asks_for_summary(body) else "text",
    )


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


def _seals(body: Mapping[str, Any], rules: MessageRules) -> bool:
    """Asked for by a client that stores nothing here; else needed where stored turns must give vendor state back."""
    if "reasoning.encrypted_content" in (body.get("include") or ()):
        return True
    return body.get("store") is not False and bool(rules.replay_extras or rules.replay_details)


def _asks_for_summary(body: Mapping[str, Any]) -> bool:
    options = body.get("reasoning") or {}
    return (options.get("summary") or options.get("generate_summary") or "none") != "none"


def ask_again(plan: Plan, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The plan's body with failed answers, and the words that ask for better ones, behind it."""
    return _REPEATERS[plan.target.capabilities.dialect](plan.body, said)


_BUILDERS: Final = {
    "chat": build_chat_request,
    "responses": build_responses_request,
    "codex": build_codex_request,
}
_REPEATERS: Final = {"chat": ask_again_chat, "responses": ask_again_responses, "codex": ask_again_codex}
