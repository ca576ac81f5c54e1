"""Decisions and messages → what a Codex app-server is told, in its own words.

In: the chat dialect's messages, normalised and repaired in the one place where that is done. Out: a body
with the fields of `thread/start` and `turn/start`, and two of our own:

    history     Responses items that a new thread is given before its turn begins
    toolNames   name in Codex → name of the tool plan, for every tool in `dynamicTools`

The first system message becomes `baseInstructions` (empty, where there is none: otherwise Codex would put its
own there), later ones stay where they are as developer messages. The last user message is the turn's `input`;
everything before it is history. The body is byte-stable: the same plan always gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from isthmus.bridge.diagnostics import CompatibilityDecision
from isthmus.bridge.dialects.codex.dynamic_tools import assign_names
from isthmus.bridge.dialects.codex.wire import complete_tool, image_input, text_input
from isthmus.bridge.merge import deep_merge
from isthmus.bridge.types.contract import OutputContract
from isthmus.bridge.types.tools import ToolDeclarationPlan, ToolPlan
from isthmus.protocol.json import JsonObject

_NOT_SENT: Final = ("stream", "stream_options", "reasoning")
"""Fields that other dialects send: Codex always streams, and takes its summary at the top."""


def build_codex_request(
    model: str,
    messages: Sequence[JsonObject],
    tools: ToolPlan,
    contract: OutputContract,
    decisions: Iterable[CompatibilityDecision],
    extra_body: Mapping[str, Any],
) -> JsonObject:
    """Everything that a thread and its next turn need."""
    named = [plan.identity.provider_name for plan in tools.declarations if plan.identity is not None]
    names = assign_names([*named, *(identity.provider_name for identity in tools.identities), *_called(messages)])
    instructions, rest = _split_instructions(messages)
    history, turn_input = _split_input(rest, names)
    body: JsonObject = {"model": model, "baseInstructions": instructions}
    if named:
        body["dynamicTools"] = [_declare(plan, names) for plan in tools.declarations]
        body["toolNames"] = {names[name]: name for name in named}
    if history:
        body["history"] = history
    body["input"] = turn_input
    if contract.send is not None:
        body["outputSchema"] = contract.send["schema"]
    merged = deep_merge(body, *(decision.sends for decision in decisions if decision.sends), extra_body)
    summary = (merged.get("reasoning") or {}).get("summary")
    kept = {name: value for name, value in merged.items() if name not in _NOT_SENT}
    return kept if summary is None else {**kept, "summary": summary}


def ask_again_codex(body: JsonObject, said: Sequence[tuple[str, str]]) -> JsonObject:
    """The same request, with each failed answer and the words that ask for a better one behind it."""
    history, turn_input = list(body.get("history", ())), body["input"]
    for answer, words in said:
        if turn_input:
            history.append(user_item(turn_input))
        history.append(_message("assistant", [{"type": "output_text", "text": answer}]))
        turn_input = [text_input(words)]
    return {**body, "history": history, "input": turn_input}


def user_item(turn_input: Iterable[JsonObject]) -> JsonObject:
    """A turn's input as the history item that it becomes."""
    return _message("user", [_from_input(part) for part in turn_input])


def _called(messages: Iterable[JsonObject]) -> Iterable[str]:
    return (call["function"]["name"] for message in messages for call in message.get("tool_calls") or ())


def _split_instructions(messages: Sequence[JsonObject]) -> tuple[str, Sequence[JsonObject]]:
    if messages and messages[0]["role"] == "system":
        return messages[0]["content"], messages[1:]
    return "", messages


def _split_input(messages: Sequence[JsonObject], names: Mapping[str, str]) -> tuple[list[JsonObject], list[JsonObject]]:
    """A user message at the end opens the turn; a turn without input goes on from the history as it stands."""
    parts = _parts(messages[-1]["content"]) if messages and messages[-1]["role"] == "user" else []
    if not parts or any(_detail(part) for part in parts):  # a turn's input cannot say how closely to look
        return _write_items(messages, names), []
    return _write_items(messages[:-1], names), [_as_input(part) for part in parts]


def _write_items(messages: Iterable[JsonObject], names: Mapping[str, str]) -> list[JsonObject]:
    items: list[JsonObject] = []
    for message in messages:
        match message["role"]:
            case "assistant":
                items += _write_act(message, names)
            case "tool":
                items.append(
                    {
                        "type": "function_call_output",
                        "call_id": message["tool_call_id"],
                        "output": message["content"],
                    }
                )
            case role:
                # Codex drops `system` messages without a word.
                speaker = "user" if role == "user" else "developer"
                items.append(_message(speaker, [_as_content(part) for part in _parts(message["content"])]))
    return items


def _write_act(message: JsonObject, names: Mapping[str, str]) -> list[JsonObject]:
    items: list[JsonObject] = []
    if message.get("content"):
        items.append(_message("assistant", [{"type": "output_text", "text": message["content"]}]))
    for call in message.get("tool_calls") or ():
        function = call["function"]
        items.append(
            {
                "type": "function_call",
                "call_id": call["id"],
                "name": names[function["name"]],
                "arguments": function["arguments"],
            }
        )
    return items


def _message(role: str, content: list[JsonObject]) -> JsonObject:
    return {"type": "message", "role": role, "content": content}


def _parts(content: Any) -> list[JsonObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _as_input(part: JsonObject) -> JsonObject:
    """A chat part as a turn's input; the message rules let text and data URLs through, nothing else."""
    return image_input(part["image_url"]["url"]) if part["type"] == "image_url" else text_input(part["text"])


def _as_content(part: JsonObject) -> JsonObject:
    """A chat part as a Responses content part."""
    detail = _detail(part)
    return _from_input(_as_input(part)) | ({"detail": detail} if detail else {})


def _from_input(part: JsonObject) -> JsonObject:
    """A turn's input as the content part that Codex makes of it."""
    if part["type"] == "image":
        return {"type": "input_image", "image_url": part["url"]}
    return {"type": "input_text", "text": part["text"]}


def _detail(part: JsonObject) -> str:
    if part["type"] != "image_url":
        return ""
    detail = part["image_url"].get("detail", "")
    return "" if detail == "auto" else detail


def _declare(plan: ToolDeclarationPlan, names: Mapping[str, str]) -> JsonObject:
    assert plan.identity is not None
    return complete_tool(
        {"name": names[plan.identity.provider_name], "description": plan.description, "inputSchema": plan.parameters}
    )
