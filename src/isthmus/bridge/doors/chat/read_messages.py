"""Chat messages → Responses items, one or several each, with the way back to the message they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject


def translate_messages(messages: Sequence[JsonObject]) -> tuple[list[JsonObject], dict[int, str]]:
    """Items, and for each item's index the path of its message."""
    items: list[JsonObject] = []
    origins: dict[int, str] = {}
    legacy: dict[str, str] = {}
    for index, message in enumerate(messages):
        path = f"messages[{index}]"
        for item in _translate(message, path, index, legacy):
            origins[len(items)] = path
            items.append(item)
    return items, origins


def missing(path: str, hint: str = "") -> RequestRefused:
    said = f"`{path}` is missing; {hint}" if hint else f"`{path}` is missing"
    return RequestRefused(said, code="missing_required_parameter", param=path)


def _wrong_type(path: str, wanted: str) -> RequestRefused:
    return RequestRefused(f"`{path}` must be {wanted}", code="invalid_type", param=path)


def _translate(message: JsonObject, path: str, index: int, legacy: dict[str, str]) -> list[JsonObject]:
    match message.get("role"):
        case "system" | "developer" | "user" as role:
            named = {"name": message["name"]} if isinstance(message.get("name"), str) else {}
            return [_message(role, _parts(message.get("content"), "input", path)) | named]
        case "assistant":
            return _translate_assistant(message, path, index, legacy)
        case "tool":
            call_id = _text(message, "tool_call_id", path, "name the call that this message answers")
            return [_output(call_id, message, path)]
        case "function":
            name = message.get("name")
            call_id = legacy.get(name, "") if isinstance(name, str) else ""
            return [_output(call_id or f"call_legacy_{name}", message, path)]
        case role:
            said = f"`{path}.role` is `{role}`; use system, developer, user, assistant or tool"
            raise RequestRefused(said, code="invalid_value", param=f"{path}.role")


def _translate_assistant(message: JsonObject, path: str, index: int, legacy: dict[str, str]) -> list[JsonObject]:
    items: list[JsonObject] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str):
        items.append({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": reasoning}]})
    if message.get("content"):
        items.append(_message("assistant", _parts(message["content"], "output", path)))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        items.append(_message("assistant", [{"type": "refusal", "refusal": refusal}]))
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise _wrong_type(f"{path}.tool_calls", "a list")
    items += [_call(call, f"{path}.tool_calls[{number}]") for number, call in enumerate(calls)]
    function = message.get("function_call")
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        call_id = legacy[function["name"]] = f"call_legacy_{index}"
        items.append(_function_call(call_id, function["name"], function.get("arguments")))
    return items


def _call(call: Any, path: str) -> JsonObject:
    if not isinstance(call, dict):
        raise _wrong_type(path, "an object")
    call_id, custom, function = _text(call, "id", path), call.get("custom"), call.get("function")
    if isinstance(custom, dict):
        name, text = _text(custom, "name", f"{path}.custom"), str(custom.get("input") or "")
        return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text}
    if not isinstance(function, dict):
        raise missing(f"{path}.function")
    return _function_call(call_id, _text(function, "name", f"{path}.function"), function.get("arguments"))


def _text(holder: JsonObject, name: str, path: str, hint: str = "") -> str:
    value = holder.get(name)
    if not isinstance(value, str) or not value:
        raise missing(f"{path}.{name}", hint)
    return value


def _message(role: str, content: str | list[JsonObject] | None) -> JsonObject:
    return {"type": "message", "role": role, "content": content}


def _function_call(call_id: str, name: str, arguments: Any) -> JsonObject:
    text = arguments if isinstance(arguments, str) else ""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}


def _output(call_id: str, message: JsonObject, path: str) -> JsonObject:
    output = _parts(message.get("content"), "input", path)
    return {"type": "function_call_output", "call_id": call_id, "output": "" if output is None else output}


def _parts(content: Any, side: str, path: str) -> str | list[JsonObject] | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise _wrong_type(f"{path}.content", "a string or a list of parts")
    return [_part(part, side, f"{path}.content[{index}]") for index, part in enumerate(content)]


def _part(part: Any, side: str, path: str) -> JsonObject:
    if not isinstance(part, dict):
        raise _wrong_type(path, "an object")
    kind = part.get("type")
    inner = part.get(kind) if isinstance(kind, str) else None
    given = inner if isinstance(inner, dict) else {}
    match kind:
        case "text":
            return {"type": f"{side}_text", "text": part.get("text")}
        case "image_url":
            detail = {"detail": given["detail"]} if given.get("detail") is not None else {}
            return {"type": "input_image", "image_url": given.get("url") if given is inner else inner, **detail}
        case "file":
            return {"type": "input_file", **given}
        case "input_audio":
            return {"type": "input_audio", "input_audio": given}
        case _:
            return part
