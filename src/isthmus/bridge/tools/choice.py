"""`tool_choice`, resolved against the tools that are really sent.

In: the client's choice, the planned declarations, and what the provider can be told. Out: a
`ToolChoicePlan`. Where a provider cannot be made to call one certain tool, the list is narrowed to that tool and
the system message says so: the nearest thing to force. `allowed_tools` narrows the list in the same way and
keeps its mode. A choice that no tool can satisfy is *rejected*: the client must hear of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.capabilities import ToolChoiceSupport
from isthmus.bridge.diagnostics import Action, CompatibilityDecision
from isthmus.bridge.tools.catalog import DEFAULT_NAMESPACE, NAMED_TYPES
from isthmus.bridge.tools.declare import TOOL_CODE
from isthmus.bridge.types.tools import ToolChoicePlan, ToolDeclarationPlan, ToolIdentity
from isthmus.protocol.json import JsonObject

_CALL_ANY: Final = "In this turn, call at least one of the tools; do not answer without calling one."
Mode = Literal["omit", "none", "auto", "required", "named"]


class ToolChoice(msgspec.Struct, frozen=True):
    """What a client's `tool_choice` says, in whichever spelling; resolved against no tool yet."""

    mode: Literal["unset", "none", "auto", "required", "named"] = "unset"
    entries: tuple[Any, ...] | None = None
    """The tools that it names: the one to call, or all that are allowed; `None`: any."""
    problem: str = ""


def read_tool_choice(choice: str | JsonObject | None) -> ToolChoice:
    """The only reading of `tool_choice`: words, objects, `allowed_tools` flat (Responses) or nested (chat)."""
    if choice is None:
        return ToolChoice()
    kind: Any = choice.get("type") if isinstance(choice, dict) else choice
    if kind in ("none", "auto", "required"):
        return ToolChoice(kind)
    if isinstance(choice, str):
        words = f"`{choice}` is not a choice; use `none`, `auto`, `required` or an object that names a tool"
        return ToolChoice(problem=words)
    if kind == "allowed_tools":
        nested = choice.get("allowed_tools")
        return _read_allowed(nested if isinstance(nested, dict) else choice)
    if isinstance(kind, str):
        return ToolChoice("named", (choice,))
    words = "`tool_choice.type` is missing; an object must say what it chooses, for example `function`"
    return ToolChoice(problem=words)


def _read_allowed(limits: JsonObject) -> ToolChoice:
    entries = limits.get("tools")
    if not isinstance(entries, list) or not entries:
        return ToolChoice(problem="`tool_choice.tools` allows no tool at all; name some, or send `none`")
    mode: Any = limits.get("mode") or "auto"
    if mode not in ("auto", "required"):
        return ToolChoice(problem=f"`tool_choice.mode` is `{mode}`; use `auto` or `required`")
    return ToolChoice(mode, tuple(entries))


def match_entry(entry: Any, identities: Sequence[ToolIdentity]) -> list[ToolIdentity]:
    """The tools that an entry means: one, or all of a namespace; empty when there is none."""
    if not isinstance(entry, dict):
        return []
    kind = entry.get("type")
    if kind in NAMED_TYPES:
        return _match_name(str(kind), *_name_of(entry, str(kind)), identities)
    if kind == "namespace":
        return [identity for identity in identities if identity.namespace == entry.get("name")]
    if kind == "mcp":
        return _match_server(entry, identities)
    return [i for i in identities if _family(i.requested_type) == _family(str(kind))][:1]


def _match_name(kind: str, name: str, namespace: str | None, identities: Sequence[ToolIdentity]) -> list[ToolIdentity]:
    same = [i for i in identities if i.requested_name == name and i.requested_type in NAMED_TYPES]
    if namespace is not None:
        same = [i for i in same if i.namespace == namespace]
    else:
        bare = [i for i in same if i.namespace in (None, DEFAULT_NAMESPACE)]
        flat = [i for i in identities if i.provider_name == name and i.requested_type in NAMED_TYPES]
        same = bare or flat or (same if len(same) == 1 else [])
    # The name decides; the type only where a function and a custom tool share it.
    return ([i for i in same if i.requested_type == kind] or same)[:1]


def _match_server(entry: JsonObject, identities: Sequence[ToolIdentity]) -> list[ToolIdentity]:
    """A server that the provider calls is one tool; one that is called from here has its tools one by one."""
    label, name = entry.get("server_label"), entry.get("name")
    servers = [i for i in identities if i.requested_type == "mcp"]
    native = [i for i in servers if i.managed is None and i.requested_name == label][:1]
    return native or [i for i in servers if i.managed and i.namespace == label and name in (None, i.requested_name)]


def plan_provider_tool_choice(
    choice: ToolChoice, declarations: Sequence[ToolDeclarationPlan], support: ToolChoiceSupport, thinking: bool = False
) -> ToolChoicePlan:
    """Resolve the choice; `declarations` are those that survived planning."""
    if choice.problem:
        return _reject(choice.problem)
    identities = [plan.identity for plan in declarations if plan.identity is not None]
    supported, when = support.supported, ""
    if thinking and support.while_thinking is not None:
        supported, when = support.while_thinking, " while the model thinks"
    match choice:
        case ToolChoice("unset"):
            return ToolChoicePlan()
        case ToolChoice("none"):
            decision = _decide("supported", "no tool is sent, so none can be called", "none")
            return ToolChoicePlan("none", decision=decision, keep=frozenset())
        case ToolChoice("named", (entry,)):
            plan = _plan_named(entry, identities, supported, when)
        case _:
            plan = _plan_mode(choice, identities, supported, when)
    return plan if support.sent else _leave_out(plan)


def _plan_mode(
    choice: ToolChoice, identities: list[ToolIdentity], supported: frozenset[str], when: str
) -> ToolChoicePlan:
    """`auto` and `required`: as asked, else `auto`, else rejected. `allowed_tools` is a hard limit: the list becomes
    exactly these tools, the mode stays."""
    asked, keep, narrowed = choice.mode, None, ""
    if choice.entries is not None:
        found = [(entry, match_entry(entry, identities)) for entry in choice.entries]
        if unknown := [_spell(entry) for entry, matches in found if not matches]:
            return _reject(f"`tool_choice.tools` allows {', '.join(unknown)}, which is not among the tools sent")
        keep = frozenset(match.provider_name for _, matches in found for match in matches)
        narrowed = f"; the list is narrowed to {len(keep)}"
    if not identities:
        if asked == "auto":
            return ToolChoicePlan(decision=_decide("supported", "there is no tool to choose from", "auto"))
        return _reject("a tool call is required, but no tool is left to call; add a tool or send `auto`")
    if asked in supported:
        mode: Mode = "required" if asked == "required" else "auto"
        return ToolChoicePlan(mode, None, _decide("supported", f"sent as `{asked}`{narrowed}", asked), keep)
    if "auto" in supported:
        reason = f"the provider does not take `{asked}`{when}; sent as `auto` with an instruction{narrowed}"
        return ToolChoicePlan("auto", None, _decide("degraded", reason, "auto"), keep, _CALL_ANY)
    return _reject(f"the provider takes neither `{asked}` nor `auto`{when}; leave `tool_choice` out")


def _plan_named(
    choice: JsonObject, identities: list[ToolIdentity], supported: frozenset[str], when: str
) -> ToolChoicePlan:
    matches = match_entry(choice, identities)
    if not matches:
        return _reject(f"no tool that is sent matches {_spell(choice)}; declare it, or choose another")
    if len(matches) > 1:
        return _plan_several(choice, matches, supported, when)
    identity = matches[0]
    name, kind = identity.provider_name, identity.provider_type
    if kind in supported and kind == "mcp" and choice.get("name"):
        reason = f"the provider can be made to use the server, not its tool `{choice['name']}`"
        return ToolChoicePlan("named", identity, _decide("degraded", reason, name))
    if kind in supported:
        return ToolChoicePlan("named", identity, _decide("supported", f"sent as a forced call of `{name}`", name))
    # With one tool left, `required` forces it as surely as its name would.
    mode: Mode = "required" if "required" in supported else "auto" if "auto" in supported else "omit"
    reason = (
        f"the provider cannot be made to call a certain `{kind}`{when}; "
        f"`{name}` is the only tool sent, with an instruction to call it"
    )
    instruction = f"In this turn, call the tool `{name}`; do not answer without calling it."
    return ToolChoicePlan(mode, identity, _decide("degraded", reason, mode), frozenset({name}), instruction)


def _plan_several(
    choice: JsonObject, matches: list[ToolIdentity], supported: frozenset[str], when: str
) -> ToolChoicePlan:
    """One of the tools of a server, no matter which: no other is sent, and one has to be called."""
    keep = frozenset(match.provider_name for match in matches)
    if "required" in supported:
        reason = f"sent as `required`; the list is narrowed to the {len(keep)} tools of {_spell(choice)}"
        return ToolChoicePlan("required", None, _decide("supported", reason, "required"), keep)
    mode: Mode = "auto" if "auto" in supported else "omit"
    reason = f"the provider does not take `required`{when}; the tools of {_spell(choice)} are sent with an instruction"
    return ToolChoicePlan(mode, None, _decide("degraded", reason, mode), keep, _CALL_ANY)


def _leave_out(plan: ToolChoicePlan) -> ToolChoicePlan:
    """The same choice for a server that refuses the field: the list and the instruction make it."""
    if plan.mode not in ("auto", "required", "named") or plan.decision is None:
        return plan
    reason = f"{plan.decision.reason}; the field itself is left out, because the server refuses it"
    decision = msgspec.structs.replace(plan.decision, reason=reason)
    return msgspec.structs.replace(plan, mode="omit", decision=decision)


def render_provider_tool_choice(plan: ToolChoicePlan) -> str | JsonObject | None:
    """The `tool_choice` of a Chat-Completions body; `None`: the field is not sent."""
    match plan.mode:
        case "auto" | "required":
            return plan.mode
        case "named" if plan.identity is not None:
            kind = plan.identity.provider_type
            if kind == "function":
                return {"type": "function", "function": {"name": plan.identity.provider_name}}
            if kind == "mcp":
                return {"type": "mcp", "mcp": {"server_label": plan.identity.requested_name}}
            return {"type": kind}
    return None


def _name_of(entry: JsonObject, kind: str) -> tuple[str, str | None]:
    """Name and namespace, in the Responses spelling or nested as Chat Completions has it."""
    inner = entry.get(kind)
    source = inner if isinstance(inner, dict) else entry
    namespace = source.get("namespace")
    return str(source.get("name", "")), namespace if isinstance(namespace, str) else None


def _family(kind: str) -> str:
    """Dated and preview versions of the web search are one tool to choose."""
    return "web_search" if kind.startswith("web_search") else kind


def _spell(entry: Any) -> str:
    if not isinstance(entry, dict):
        return f"`{entry}`"
    kind = str(entry.get("type", ""))
    name, namespace = _name_of(entry, kind)
    name = name or str(entry.get("server_label") or "")
    full = f"{namespace}.{name}" if namespace else name
    return f"{kind} `{full}`" if full else f"`{kind}`"


def _decide(action: Action, reason: str, effective: str | None = None) -> CompatibilityDecision:
    return CompatibilityDecision("tool_choice", action, reason, effective_value=effective, code=TOOL_CODE)


def _reject(reason: str) -> ToolChoicePlan:
    return ToolChoicePlan(decision=_decide("rejected", reason))
