"""Chat tools and tool choice → the Responses spelling; legacy `functions` included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject


@dataclass(frozen=True, slots=True)
class ToolOrigin:
    """Where the caller wrote a tool, and where its fields are."""

    tool: str
    fields: str

    def path(self, rest: str) -> str:
        return self.tool + rest if rest in ("", ".type") else self.fields + rest


def translate_tools(
    tools: Sequence[JsonObject] | None, functions: Sequence[JsonObject] | None, web_search: JsonObject | None
) -> tuple[list[JsonObject], list[ToolOrigin]]:
    """Tools in the spelling of Responses, and for each the place it came from."""
    translated: list[JsonObject] = []
    origins: list[ToolOrigin] = []
    for index, tool in enumerate(tools or ()):
        path = f"tools[{index}]"
        translated.append(_translate_tool(tool, path))
        nested = tool.get("type") in ("function", "custom") and isinstance(tool.get(tool["type"]), dict)
        origins.append(ToolOrigin(path, f"{path}.{tool['type']}" if nested else path))
    for index, function in enumerate(functions or ()):
        translated.append({"type": "function", **function})
        origins.append(ToolOrigin(f"functions[{index}]", f"functions[{index}]"))
    if web_search is not None:
        translated.append({"type": "web_search", **_web_search(web_search)})
        origins.append(ToolOrigin("web_search_options", "web_search_options"))
    return translated, origins


def translate_choice(choice: str | JsonObject | None, legacy: str | JsonObject | None) -> str | JsonObject | None:
    if choice is None:
        return {"type": "function", "name": legacy.get("name")} if isinstance(legacy, dict) else legacy
    if isinstance(choice, str):
        return choice
    kind = choice.get("type")
    inner = choice.get(kind) if isinstance(kind, str) else None
    if not isinstance(inner, dict):
        return choice
    if kind == "allowed_tools":
        named = [_flat(tool) for tool in inner.get("tools") or () if isinstance(tool, dict)]
        return {"type": "allowed_tools", "mode": inner.get("mode", "auto"), "tools": named}
    return _flat(choice)


def _translate_tool(tool: JsonObject, path: str) -> JsonObject:
    kind = tool.get("type")
    inner = tool.get(kind) if isinstance(kind, str) else None
    if kind == "custom" and isinstance(inner, dict):
        return {"type": "custom", **inner, **_custom_format(inner.get("format"))}
    if kind == "function":
        if not isinstance(inner, dict):
            raise RequestRefused(
                f"`{path}.function` is missing; give it a `name`",
                code="missing_required_parameter",
                param=f"{path}.function",
            )
        if not isinstance(inner.get("name"), str) or not inner["name"]:
            raise RequestRefused(
                f"`{path}.function` has no `name`; give each function tool one",
                code="missing_required_parameter",
                param=f"{path}.function.name",
            )
        return {"type": "function", **inner}
    return tool


def _custom_format(given: Any) -> JsonObject:
    """Chat nests the grammar one level deeper than Responses does."""
    if isinstance(given, dict) and isinstance(given.get("grammar"), dict):
        return {"format": {"type": "grammar", **given["grammar"]}}
    return {}


def _web_search(options: JsonObject) -> JsonObject:
    """Chat nests an approximate location; Responses spells it flat."""
    location = options.get("user_location")
    if isinstance(location, dict) and isinstance(location.get("approximate"), dict):
        return {**options, "user_location": {"type": "approximate", **location["approximate"]}}
    return options


def _flat(choice: JsonObject) -> JsonObject:
    kind = choice.get("type")
    inner = choice.get(kind) if isinstance(kind, str) else None
    return {"type": kind, **inner} if isinstance(inner, dict) else choice
