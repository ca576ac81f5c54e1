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


def _translate(message: JsonObject, path: str, index: int, legacy: dict[str, str]) -> list[JsonObject]:
    match message.get("role"):
        case "system" | "developer" | "user" as role:
            item = {"type": "message", "role": role, "content": _parts(message.get("content"), "input", path)}
            if isinstance(message.get("name"), str):
                item["name"] = message["name"]
            return [item]
        case "assistant":
            return _translate_assistant(message, path, index, legacy)
        case "tool":
            return [_output(_required_id(message, path), message.get("content"), path)]
        case "function":
            name = message.get("name")
            call_id = legacy.get(name) if isinstance(name, str) else None
            return [_output(call_id or f"call_legacy_{name}", message.get("content"), path)]
        case role:
            raise RequestRefused(
                f"`{path}.role` is `{role}`; use system, developer, user, assistant or tool",
                code="invalid_value",
                param=f"{path}.role",
            )


def _translate_assistant(message: JsonObject, path: str, index: int, legacy: dict[str, str]) -> list[JsonObject]:
    items: list[JsonObject] = []
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(reasoning, str):
        items.append({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": reasoning}]})
    content = message.get("content")
    if content:
        items.append({"type": "message", "role": "assistant", "content": _parts(content, "output", path)})
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        part = {"type": "refusal", "refusal": refusal}
        items.append({"type": "message", "role": "assistant", "content": [part]})
    calls = message.get("tool_calls") or ()
    if not isinstance(calls, list | tuple):
        raise RequestRefused(f"`{path}.tool_calls` must be a list", code="invalid_type", param=f"{path}.tool_calls")
    items += [_call(call, f"{path}.tool_calls[{number}]") for number, call in enumerate(calls)]
    function = message.get("function_call")
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        call_id = f"call_legacy_{index}"
        legacy[function["name"]] = call_id
        items.append(_function_call(call_id, function["name"], function.get("arguments")))
    return items


def _call(call: Any, path: str) -> JsonObject:
    if not isinstance(call, dict):
        raise RequestRefused(f"`{path}` must be an object", code="invalid_type", param=path)
    call_id = call.get("id")
    if not isinstance(call_id, str) or not call_id:
        raise RequestRefused(f"`{path}.id` is missing", code="missing_required_parameter", param=f"{path}.id")
    custom = call.get("custom")
    if isinstance(custom, dict):
        return {
            "type": "custom_tool_call",
            "call_id": call_id,
            "name": _name(custom, f"{path}.custom"),
            "input": str(custom.get("input") or ""),
        }
    function = call.get("function")
    if not isinstance(function, dict):
        raise RequestRefused(
            f"`{path}.function` is missing", code="missing_required_parameter", param=f"{path}.function"
        )
    return _function_call(call_id, _name(function, f"{path}.function"), function.get("arguments"))


def _name(holder: JsonObject, path: str) -> str:
    name = holder.get("name")
    if not isinstance(name, str) or not name:
        raise RequestRefused(f"`{path}.name` is missing", code="missing_required_parameter", param=f"{path}.name")
    return name


def _function_call(call_id: str, name: str, arguments: Any) -> JsonObject:
    text = arguments if isinstance(arguments, str) else ""
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text}


def _required_id(message: JsonObject, path: str) -> str:
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str) or not call_id:
        raise RequestRefused(
            f"`{path}.tool_call_id` is missing; name the call that this message answers",
            code="missing_required_parameter",
            param=f"{path}.tool_call_id",
        )
    return call_id


def _output(call_id: str, content: Any, path: str) -> JsonObject:
    output = _parts(content, "input", path)
    return {"type": "function_call_output", "call_id": call_id, "output": "" if output is None else output}


def _parts(content: Any, side: str, path: str) -> str | list[JsonObject] | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise RequestRefused(
            f"`{path}.content` must be a string or a list of parts", code="invalid_type", param=f"{path}.content"
        )
    return [_part(part, side, f"{path}.content[{index}]") for index, part in enumerate(content)]


def _part(part: Any, side: str, path: str) -> JsonObject:
    if not isinstance(part, dict):
        raise RequestRefused(f"`{path}` must be an object", code="invalid_type", param=path)
    match part.get("type"):
        case "text":
            return {"type": f"{side}_text", "text": part.get("text")}
        case "image_url":
            image = part.get("image_url")
            given = image if isinstance(image, dict) else {"url": image}
            translated: JsonObject = {"type": "input_image", "image_url": given.get("url")}
            if given.get("detail") is not None:
                translated["detail"] = given["detail"]
            return translated
        case "file":
            return {"type": "input_file", **_inner(part, "file")}
        case "input_audio":
            return {"type": "input_audio", "input_audio": _inner(part, "input_audio")}
        case _:
            return part


def _inner(part: JsonObject, name: str) -> JsonObject:
    inner = part.get(name)
    return inner if isinstance(inner, dict) else {}
