"""Decisions and messages → the body of a native Responses request.

The messages are those of the chat dialect, normalised and repaired in the same way, and only spelled
anew here: a client sees one behaviour whichever dialect answers. We hold the state, so the upstream is
always told to store nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.merge import deep_merge
from isthmus.bridge.tools.choice import render_provider_tool_choice
from isthmus.bridge.tools.declare import render_provider_tool_declarations
from isthmus.bridge.types.contract import OutputContract
from isthmus.bridge.types.tools import ToolPlan
from isthmus.protocol.json import JsonObject


def build_responses_request(
    model: str,
    messages: Sequence[JsonObject],
    tools: ToolPlan,
    contract: OutputContract,
    decisions: Iterable[CompatibilityDecision],
    extra_body: Mapping[str, Any],
) -> JsonObject:
    """The exact body that goes upstream."""
    custom = {identity.provider_name for identity in tools.identities if identity.provider_type == "custom"}
    body: JsonObject = {"model": model, "input": spell_items(messages, custom), "store": False}
    if tools.declarations:
        body["tools"] = [_flat(tool) for tool in render_provider_tool_declarations(tools.declarations)]
        choice = render_provider_tool_choice(tools.choice)
        if choice is not None:
            body["tool_choice"] = _flat_choice(choice, tools)
    if contract.send is not None:
        body["text"] = {"format": contract.send}
    built = deep_merge(body, *(decision.sends for decision in decisions if decision.sends), extra_body)
    if "include" in built and built.get("top_logprobs"):
        built["include"] = [*built["include"], "message.output_text.logprobs"]  # the number alone brings none
    return built


def ask_again_responses(body: JsonObject, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The same request, with each failed answer and the words that ask for a better one behind it."""
    items = list(body["input"])
    for answer, words in said:
        items += spell_items([{"role": "assistant", "content": answer}, {"role": "user", "content": words}], set())
    return {**body, "input": items}


def spell_items(messages: Iterable[JsonObject], custom: set[str]) -> list[JsonObject]:
    """Chat messages as Responses items; calls to the tools in `custom` get their free-text form back."""
    items: list[JsonObject] = []
    free_text: set[str] = set()
    for message in messages:
        match message["role"]:
            case "assistant":
                items += _assistant(message, custom, free_text)
            case "tool":
                call_id = message["tool_call_id"]
                kind = "custom_tool_call_output" if call_id in free_text else "function_call_output"
                items.append({"type": kind, "call_id": call_id, "output": message["content"]})
            case role:
                content = [_part(part) for part in _parts(message["content"])]
                items.append({"type": "message", "role": role, "content": content})
    return items


def _assistant(message: JsonObject, custom: set[str], free_text: set[str]) -> list[JsonObject]:
    items: list[JsonObject] = []
    sealed = message.get("encrypted_content")
    reasoning = message.get("reasoning_content")
    if sealed:
        items += sealed if isinstance(sealed, list) else [sealed]
    elif reasoning:
        content = [{"type": "reasoning_text", "text": reasoning}]
        items.append({"type": "reasoning", "summary": [], "content": content})
    if message.get("content"):
        parts = [
            {"type": "output_text", "text": part["text"], "annotations": []} for part in _parts(message["content"])
        ]
        items.append({"type": "message", "role": "assistant", "content": parts})
    for call in message.get("tool_calls") or ():
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name in custom:
            free_text.add(call["id"])
            items.append(
                {"type": "custom_tool_call", "call_id": call["id"], "name": name, "input": _free_text(arguments)}
            )
        else:
            items.append({"type": "function_call", "call_id": call["id"], "name": name, "arguments": arguments})
    return items


def _free_text(arguments: str) -> str:
    """The input of a custom call, freed from the object that it travels in inside the house."""
    try:
        given = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return arguments
    text = given.get("input") if isinstance(given, dict) else None
    return text if isinstance(text, str) else arguments


def _parts(content: Any) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _part(part: JsonObject) -> JsonObject:
    match part["type"]:
        case "text":
            return {"type": "input_text", "text": part["text"]}
        case "image_url":
            image = part["image_url"]
            return {"type": "input_image", "image_url": image["url"], "detail": image.get("detail", "auto")}
        case "file":
            return {"type": "input_file", **part["file"]}
        case _:
            return part


def _flat(tool: JsonObject) -> JsonObject:
    if tool["type"] != "function" or "function" not in tool:
        return tool
    return {"type": "function", "strict": False, **tool["function"]}


def _flat_choice(choice: str | JsonObject, tools: ToolPlan) -> str | JsonObject:
    if isinstance(choice, str):
        return choice
    identity = tools.choice.identity
    if choice["type"] in ("function", "custom") and identity is not None:
        return {"type": choice["type"], "name": identity.provider_name}
    if choice["type"] == "mcp":
        return {"type": "mcp", **choice["mcp"]}
    return choice
