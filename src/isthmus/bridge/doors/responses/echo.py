"""The request's own fields as a Response shows them: the values that took effect, defaults filled in.

Required-nullable fields are always there (`null` if nothing); optional ones are left out, never `null`. A setting
that was changed shows what was sent, one that was left out its default. What the client gets by other means stays as
it was asked for: a format and a tool choice are held to by the bridge itself, labels are kept by the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from isthmus.bridge.capabilities import EFFORTS
from isthmus.bridge.diagnostics import CompatibilityPlan
from isthmus.bridge.parse import Request, conversation_of
from isthmus.bridge.tools.credentials import showable_tool
from isthmus.bridge.toolset import Toolset
from isthmus.protocol.json import JsonObject, without_nulls
from isthmus.protocol.response import Echo


def echo_request(request: Request, made: CompatibilityPlan) -> Echo:
    """Everything that a Response repeats of its request; `made` are the decisions on its fields."""
    body: JsonObject = {**request.body, **_changed(made)}
    echo: JsonObject = {
        "previous_response_id": body.get("previous_response_id"),
        "instructions": body.get("instructions"),
        "tools": _echo_tools(body.get("tools") or ()),
        "tool_choice": _echo_choice(body.get("tool_choice")),
        **_SETTINGS,
        **{name: body[name] for name in body.keys() & _SETTINGS.keys() if body[name] is not None},
        "text": _echo_text(body.get("text") or {}, made),
        "reasoning": _echo_reasoning(body.get("reasoning"), made),
        "service_tier": _SHOWN_TIERS.get(body.get("service_tier"), "default"),
        "metadata": body.get("metadata") or {},
        "safety_identifier": body.get("safety_identifier"),
        "prompt_cache_key": body.get("prompt_cache_key"),
    }
    if body.get("user") is not None:
        echo["user"] = body.get("user")
    if not body.keys().isdisjoint(_SERVICES):
        echo.update(_echo_services(body, made))
    if (conversation := conversation_of(request.body)) is not None and _holds(made, "conversation"):
        echo["conversation"] = {"id": conversation}
    return cast(Echo, echo)


def _echo_services(body: JsonObject, made: CompatibilityPlan) -> JsonObject:
    """Fields that a Response has only where the request asked for them."""
    asked = {name: given for name in _SERVICES if (given := without_nulls(body.get(name) or {}))}
    shown: JsonObject = {}
    if "moderation" in asked:
        failure = {"type": "error", "code": "moderation_unavailable", "message": "nothing here moderates"}
        shown["moderation"] = {"input": failure, "output": dict(failure)}
    if "access_programs" in asked:
        shown["access_programs"] = {"cyber": asked["access_programs"].get("cyber", "standard")}
    if "image" in asked:
        enabled = asked["image"].get("context_compression") == "enabled"
        shown["image"] = {"context_compression": "enabled" if enabled else "disabled"}
    if "prompt_cache_options" in asked:
        options = asked["prompt_cache_options"]
        # Whom they were to be compared with is never known here.
        compared = {name: options[name] for name in ("comparison_response_id",) if name in options}
        if compared:
            shown["prompt_cache_diagnostics"] = {"type": "unavailable"}
        if _in_effect(made, "prompt_cache_options", options) is not None:
            applied = {"mode": options.get("mode", "implicit"), "ttl": options.get("ttl", "30m")}
            shown["prompt_cache_options"] = {**applied, **compared}
    return shown


_SERVICES: Final = ("moderation", "access_programs", "image", "prompt_cache_options")
_SHOWN_TIERS: Final[Mapping[Any, str]] = {
    "fast": "priority",
    **{name: name for name in ("default", "flex", "scale", "priority", "ultrafast")},
}
"""Tiers as a Response names them; `auto`, and whatever only one provider knows, is shown as `default`."""

_SETTINGS: Final[JsonObject] = {
    "parallel_tool_calls": True,
    **dict.fromkeys(("max_tool_calls", "max_output_tokens", "service_tier")),
    **dict.fromkeys(("temperature", "top_p"), 1.0),
    **dict.fromkeys(("presence_penalty", "frequency_penalty"), 0.0),
    "top_logprobs": 0,
    "truncation": "disabled",
    "store": True,
    "background": False,
}
"""What a decision may change, each with its default."""


def _changed(made: CompatibilityPlan) -> JsonObject:
    """Settings that took effect otherwise than asked; `None`: not at all."""
    return {
        decision.path: decision.effective_value if decision.action == "degraded" else None
        for decision in made.decisions
        if decision.action != "supported" and decision.path in _SETTINGS
    }


def _echo_tools(tools: Sequence[JsonObject]) -> list[JsonObject]:
    def make() -> list[JsonObject]:
        return [_echo_tool(tool) for tool in tools]

    return tools.once("echo", make) if isinstance(tools, Toolset) else make()


def _echo_tool(tool: JsonObject) -> JsonObject:
    tool = without_nulls(tool)
    if tool.get("type") != "function":
        return showable_tool(tool)
    # Required and nullable in the object, optional in the request.
    return {"description": None, "parameters": None, "strict": None, **tool}


def _echo_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return "auto" if choice is None else choice
    told = without_nulls(choice)
    return {"mode": "auto", **told} if told.get("type") == "allowed_tools" else told


def _echo_text(text: JsonObject, made: CompatibilityPlan) -> JsonObject:
    given = text.get("format") or {"type": "text"}
    if given.get("type") == "json_schema":
        given = {"description": None, "schema": None, "strict": False, **given}
        given["strict"] = bool(given["strict"])
    echoed: JsonObject = {"format": given}
    verbosity = _in_effect(made, "text.verbosity", text.get("verbosity"))
    if verbosity is not None:
        echoed["verbosity"] = verbosity
    return echoed


def _holds(made: CompatibilityPlan, path: str) -> bool:
    decision = made.decision(path)
    return decision is not None and decision.action in ("supported", "degraded")


def _in_effect(made: CompatibilityPlan, path: str, asked: Any) -> Any:
    decision = made.decision(path) if asked is not None else None
    if decision is None or decision.action not in ("ignored", "degraded"):
        return asked
    return decision.effective_value if decision.action == "degraded" else None


# Efforts that the published schema does not list are shown as their nearest listed neighbour.
_SHOWN_EFFORTS: Final = {"minimal": "low", "max": "xhigh", "ultra": "xhigh"}


def _echo_reasoning(reasoning: Any, made: CompatibilityPlan) -> JsonObject | None:
    reasoning = without_nulls(reasoning or {})
    if not reasoning:
        return None
    asked = reasoning.get("effort")
    effort = _in_effect(made, "reasoning.effort", asked)
    if effort is not None and effort not in EFFORTS:
        effort = asked  # the vendor's own word (`enabled`) is none that a Response knows
    summary = reasoning.get("summary")
    # `none` is Codex's word for no summary; a Response says `null`.
    shown = {"effort": _SHOWN_EFFORTS.get(effort, effort), "summary": None if summary == "none" else summary}
    for name in ("mode", "context"):
        used = _in_effect(made, f"reasoning.{name}", reasoning.get(name))
        if used is not None:
            shown[name] = used
    return shown
