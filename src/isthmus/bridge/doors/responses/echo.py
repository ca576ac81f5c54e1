"""The request's own fields as a Response shows them: the values that took effect, defaults filled in.

Required-nullable fields are always there (`null` if nothing); optional ones are left out, never `null`.
"""

from __future__ import annotations

from typing import Any, Final

from isthmus.bridge.parse import Request
from isthmus.bridge.tools.credentials import showable_tool
from isthmus.protocol.json import JsonObject
from isthmus.protocol.response import Echo


def echo_request(request: Request, *, instructions: str | None = None) -> Echo:
    """Everything that a Response repeats of its request."""
    body = request.body
    text = body.get("text") or {}
    echo: Echo = {
        "previous_response_id": body.get("previous_response_id"),
        "instructions": body.get("instructions") if instructions is None else instructions,
        "tools": [_echo_tool(tool) for tool in body.get("tools") or ()],
        "tool_choice": _echo_choice(body.get("tool_choice")),
        "parallel_tool_calls": _or(body.get("parallel_tool_calls"), True),
        "max_tool_calls": body.get("max_tool_calls"),
        "max_output_tokens": body.get("max_output_tokens"),
        "temperature": _or(body.get("temperature"), 1.0),
        "top_p": _or(body.get("top_p"), 1.0),
        "presence_penalty": _or(body.get("presence_penalty"), 0.0),
        "frequency_penalty": _or(body.get("frequency_penalty"), 0.0),
        "top_logprobs": _or(body.get("top_logprobs"), 0),
        "truncation": _or(body.get("truncation"), "disabled"),
        "text": _echo_text(dict(text)),
        "reasoning": _echo_reasoning(body.get("reasoning")),
        "store": _or(body.get("store"), True),
        "background": _or(body.get("background"), False),
        "service_tier": _or(body.get("service_tier"), "default"),
        "metadata": body.get("metadata") or {},
        "safety_identifier": body.get("safety_identifier"),
        "prompt_cache_key": body.get("prompt_cache_key"),
    }
    if body.get("user") is not None:
        echo["user"] = body.get("user")
    # `conversation` is not repeated: nothing here holds one, and an echo would say otherwise.
    return echo


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _echo_tool(tool: JsonObject) -> JsonObject:
    if tool.get("type") != "function":
        return showable_tool(tool)
    # Required and nullable in the object, optional in the request.
    return {"description": None, "parameters": None, "strict": None, **tool}


def _echo_choice(choice: Any) -> Any:
    if choice is None:
        return "auto"
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": choice.get("mode") or "auto"}
    return choice


def _echo_text(text: JsonObject) -> JsonObject:
    given = text.get("format") or {"type": "text"}
    if given.get("type") == "json_schema":
        given = {"description": None, "schema": None, "strict": False, **given}
        given["strict"] = bool(given["strict"])
    echoed: JsonObject = {"format": given}
    if text.get("verbosity") is not None:
        echoed["verbosity"] = text["verbosity"]
    return echoed


# Efforts that the published schema does not list are shown as their nearest listed neighbour.
_SHOWN_EFFORTS: Final = {"minimal": "low", "max": "xhigh", "ultra": "xhigh"}


def _echo_reasoning(reasoning: Any) -> JsonObject | None:
    if not reasoning:
        return None
    effort = reasoning.get("effort")
    summary = reasoning.get("summary")
    # `none` is Codex's word for no summary; a Response says `null`.
    return {"effort": _SHOWN_EFFORTS.get(effort, effort), "summary": None if summary == "none" else summary}
