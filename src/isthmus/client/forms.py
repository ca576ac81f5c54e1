"""Tool calls in every wire form there is, read into ours and written back.

    unified     {"id", "name", "parameters" | "arguments"}          ours, snake or camel
    chat        {"id", "function": {"name", "arguments"}}           OpenAI Chat Completions, and `metadata.tool_calls`
    responses   {"type": "function_call", "call_id", "name", …}     OpenAI Responses
    anthropic   {"type": "tool_use", "id", "name", "input"}         Anthropic content blocks
    gemini      {"functionCall": {"name", "args"}}                  Gemini parts

In: one entry. Out: a `ToolCall`, or `None` where the entry is no call at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from isthmus.protocol.json import JsonObject
from isthmus.tools.calls import ToolCall, arguments_text, make_call, read_arguments, synthetic_id
from isthmus.tools.messages import ToolCallPart

Form = Literal["chat", "responses", "anthropic", "gemini"]

_SIGNATURES: Final = ("thoughtSignature", "thought_signature", "extra_content")
"""Vendor state that sits beside a call and must go back with it."""


def read_call(entry: object, index: int) -> ToolCall | None:
    """One entry in any form. A missing id is made up from the call's place and content, and flagged."""
    if isinstance(entry, ToolCall):
        return entry
    if isinstance(entry, ToolCallPart):
        return entry.call
    if not isinstance(entry, Mapping):
        return None
    found = _fields(entry)
    if found is None:
        return None
    id, name, arguments = found
    extra = {key: entry[key] for key in _SIGNATURES if key in entry}
    words = name if isinstance(name, str) else ""
    if not isinstance(id, str) or not id:
        id = synthetic_id(index, words, read_arguments(arguments)[1])
        extra["synthetic_id"] = True
    return make_call(id, words, arguments, provider=_provider(entry), extra=extra)


def looks_like_call(entry: object) -> bool:
    """Whether a content block, part or item is a call: other blocks stand beside them."""
    if isinstance(entry, ToolCall | ToolCallPart):
        return True
    if not isinstance(entry, Mapping):
        return False
    return entry.get("type") in _CALL_TYPES or isinstance(_gemini(entry), Mapping)


def form_of(entry: object) -> str:
    """Which of the forms an entry has, for reports."""
    if isinstance(entry, Mapping):
        if isinstance(entry.get("function"), Mapping):
            return "chat"
        if entry.get("type") in ("function_call", "custom_tool_call"):
            return "responses"
        if entry.get("type") == "tool_use":
            return "anthropic"
        if isinstance(_gemini(entry), Mapping):
            return "gemini"
    return "unified"


def write_call(call: ToolCall, form: Form, *, include_type: bool = True) -> JsonObject:
    """A call in a wire's own form. Where a wire wants an object and there is none, the raw text goes along."""
    signatures = {key: call.extra[key] for key in _SIGNATURES if key in call.extra}
    given_id = {} if call.extra.get("synthetic_id") else {"id": call.id}
    match form:
        case "chat":
            function = {"name": call.name, "arguments": arguments_text(call)}
            kind = {"type": "function"} if include_type else {}
            return {"id": call.id, **kind, "function": function, **signatures}
        case "responses":
            text = arguments_text(call)
            return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": text}
        case "anthropic":
            return {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call)}
        case "gemini":
            return {"functionCall": {**given_id, "name": call.name, "args": _object(call)}, **signatures}


def write_message(calls: Sequence[ToolCall], form: Form, text: str = "") -> JsonObject:
    """An assistant message that makes these calls, as that wire spells it."""
    written = [write_call(call, form) for call in calls]
    match form:
        case "chat":
            return {"role": "assistant", "content": text or None, "tool_calls": written}
        case "responses":
            said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            return {"object": "response", "output": [said, *written] if text else written}
        case "anthropic":
            return {"role": "assistant", "content": [{"type": "text", "text": text}, *written] if text else written}
        case "gemini":
            return {"role": "model", "parts": [{"text": text}, *written] if text else written}


_CALL_TYPES: Final = ("function_call", "custom_tool_call", "tool_use")


def _fields(entry: Mapping[str, Any]) -> tuple[object, object, object] | None:
    """Id, name and arguments, wherever this form keeps them."""
    function = entry.get("function")
    if isinstance(function, Mapping):
        return entry.get("id"), function.get("name"), function.get("arguments")
    gemini = _gemini(entry)
    if isinstance(gemini, Mapping):
        return gemini.get("id"), gemini.get("name"), gemini.get("args")
    if entry.get("type") == "custom_tool_call":
        return entry.get("call_id"), entry.get("name"), {"input": entry.get("input", "")}
    if "name" not in entry and entry.get("type") not in _CALL_TYPES:
        return None
    id = next((entry[key] for key in ("call_id", "callId", "id") if entry.get(key)), None)
    arguments = next((entry[key] for key in ("arguments", "parameters", "input", "args") if key in entry), None)
    return id, entry.get("name"), arguments


def _gemini(entry: Mapping[str, Any]) -> object:
    found = entry.get("functionCall")
    return entry.get("function_call") if found is None else found


def _provider(entry: Mapping[str, Any]) -> str | None:
    metadata = entry.get("metadata")
    named = entry.get("provider")
    if named is None and isinstance(metadata, Mapping):
        named = metadata.get("provider") or metadata.get("providerId")
    return named if isinstance(named, str) else None


def _object(call: ToolCall) -> Any:
    # Unreadable arguments stay a text, even where an object is usual: reading it back finds the same error.
    return dict(call.arguments) if call.arguments is not None else call.raw_arguments
