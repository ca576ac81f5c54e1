"""Client tools ↔ Codex dynamic tools.

In: function tools in Chat or Responses shape, and a tool choice. Out: `dynamicTools` entries for thread
start and a map that gives each tool its own name back. Codex knows no tool choice, so a choice is carried
out here by offering less: `none` offers nothing, a forced tool offers only itself. A tool that shares its
name with a Codex built-in would be accepted and then silently shadowed, so such names never leave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

MAX_NAME: Final = 128

# What codex 0.163 to 0.166 may offer on its own, in any model's tool mode. A name too many here only costs
# a prefix upstream; a name too few costs the client its tool.
CODEX_TOOL_NAMES: Final = frozenset(
    {
        "apply_patch",
        "clock",
        "close_agent",
        "collaboration",
        "create_goal",
        "exec",
        "exec_command",
        "followup_task",
        "functions",
        "get_goal",
        "image_generation",
        "interrupt_agent",
        "list_agents",
        "list_mcp_resource_templates",
        "list_mcp_resources",
        "local_shell",
        "multi_agent_v1",
        "multi_tool_use",
        "read_mcp_resource",
        "request_permissions",
        "request_user_input",
        "request_user_input_async",
        "resume_agent",
        "send_input",
        "send_message",
        "send_user_message_async",
        "shell",
        "shell_command",
        "sleep",
        "spawn_agent",
        "tool_search",
        "tool_suggest",
        "update_goal",
        "update_plan",
        "view_image",
        "wait",
        "wait_agent",
        "web_search",
        "write_stdin",
    }
)


@dataclass(frozen=True, slots=True)
class DynamicTools:
    """What Codex is told, how its names lead back to the client's, and what could not be said."""

    tools: tuple[JsonObject, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Codex name → client name, for every tool in `tools`."""
    skipped: tuple[str, ...] = ()
    """Paths of tools that are not functions (`tools[2]`): the planner must have dealt with them."""


def build_dynamic_tools(tools: Sequence[Mapping[str, Any]] | None, tool_choice: Any = "auto") -> list[JsonObject]:
    """Function tools as `{name, description, inputSchema}`; a tool without a description has none here."""
    return list(plan_dynamic_tools(tools, tool_choice).tools)


def plan_dynamic_tools(tools: Sequence[Mapping[str, Any]] | None, tool_choice: Any = "auto") -> DynamicTools:
    """The same, with the map that restores names on the way back."""
    functions: list[tuple[str, Mapping[str, Any]]] = []
    skipped: list[str] = []
    for index, tool in enumerate(tools or ()):
        function = _function_of(tool)
        name = None if function is None else function.get("name")
        if function is None:
            skipped.append(f"tools[{index}]")
        elif not isinstance(name, str) or not name:
            raise RequestRefused(
                f"`tools[{index}]` has no `name`; give each function tool one", param=f"tools[{index}].name"
            )
        else:
            functions.append((name, function))
    chosen = _apply_choice(functions, tool_choice)
    codex_names = assign_names([name for name, _ in chosen])
    return DynamicTools(
        tools=tuple(_declare(codex_names[name], function) for name, function in chosen),
        names={codex_names[name]: name for name, _ in chosen},
        skipped=tuple(skipped),
    )


def assign_names(names: Iterable[str]) -> dict[str, str]:
    """Client name → a name that Codex accepts and does not shadow; names that are fine stay as they are."""
    wanted = list(dict.fromkeys(names))
    assigned = {name: name for name in wanted if _is_free(name)}
    taken = set(assigned)
    for name in wanted:
        if name not in assigned:
            assigned[name] = _fresh(name, taken)
            taken.add(assigned[name])
    return assigned


def build_tool_call_delta_from_dynamic_request(
    payload: Mapping[str, Any], names: Mapping[str, str] | None = None
) -> JsonObject:
    """A dynamic tool call, as request or as older event, in the form of a Chat delta."""
    tool = str(payload.get("tool") or "")
    return {
        "tool_calls": [
            {
                "id": str(payload.get("callId") or payload.get("call_id") or ""),
                "type": "function",
                "function": {
                    "name": (names or {}).get(tool, tool),
                    "arguments": arguments_text(payload.get("arguments")),
                },
            }
        ]
    }


def arguments_text(arguments: Any) -> str:
    """Argument text for a call whose verbatim string is not known: strings as they are, values compactly."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps({} if arguments is None else arguments, separators=(",", ":"), ensure_ascii=False)


def build_tool_reply(output: str | Sequence[Mapping[str, Any]], *, success: bool = True) -> JsonObject:
    """The answer to `item/tool/call`. Only this shape reaches the model; Codex calls any other invalid."""
    if isinstance(output, str):
        items: list[JsonObject] = [{"type": "inputText", "text": output}]
    else:
        items = [_content_item(part) for part in output]
    return {"contentItems": items, "success": success}


def build_older_tool_reply(output: str | Sequence[Mapping[str, Any]], *, success: bool = True) -> JsonObject:
    """The same answer for binaries that speak the older methods: text only."""
    if not isinstance(output, str):
        output = "\n".join(str(part.get("text", "")) for part in output if part.get("text"))
    return {"output": output, "success": success}


def _function_of(tool: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The function inside a Chat-shaped tool, or the Responses-shaped tool itself."""
    if tool.get("type", "function") != "function":
        return None
    inner = tool.get("function")
    return inner if isinstance(inner, Mapping) else tool


def _apply_choice(
    functions: list[tuple[str, Mapping[str, Any]]], tool_choice: Any
) -> list[tuple[str, Mapping[str, Any]]]:
    match tool_choice:
        case None | "auto" | "required":
            return functions
        case "none":
            return []
        case {"type": "allowed_tools", **rest}:
            inner = rest.get("allowed_tools")
            allowed: Any = (inner if isinstance(inner, Mapping) else rest).get("tools")
            wanted = {_choice_name(entry) for entry in allowed or ()}
            return [pair for pair in functions if pair[0] in wanted]
        case {"type": "function"}:
            name = _choice_name(tool_choice)
            forced = [pair for pair in functions if pair[0] == name]
            if not forced:
                raise RequestRefused(
                    f"`tool_choice` names `{name}`, which is not among `tools`; add it or choose another",
                    param="tool_choice",
                )
            return forced
        case _:
            raise RequestRefused(
                "`tool_choice` must be `none`, `auto`, `required`, a function or `allowed_tools` for this provider",
                param="tool_choice",
            )


def _choice_name(choice: Mapping[str, Any]) -> str:
    inner = choice.get("function")
    source = inner if isinstance(inner, Mapping) else choice
    return str(source.get("name") or "")


def _declare(name: str, function: Mapping[str, Any]) -> JsonObject:
    declared: JsonObject = {"name": name}
    if function.get("description") is not None:
        declared["description"] = function["description"]
    parameters = function.get("parameters")
    declared["inputSchema"] = {} if parameters is None else parameters
    return declared


def _is_free(name: str) -> bool:
    return (
        re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) is not None
        and not name.startswith("mcp__")
        and name not in CODEX_TOOL_NAMES
    )


def _fresh(name: str, taken: set[str]) -> str:
    """`client_` in front frees a reserved name; a number at the end tells equal ones apart."""
    base = re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:MAX_NAME]
    if not _is_free(base):
        base = f"client_{base}"[:MAX_NAME]
    candidate, number = base, 2
    while candidate in taken:
        suffix = f"_{number}"
        candidate, number = base[: MAX_NAME - len(suffix)] + suffix, number + 1
    return candidate


def _content_item(part: Mapping[str, Any]) -> JsonObject:
    match part.get("type"):
        case "input_image" | "image_url" | "inputImage":
            url = part.get("image_url") or part.get("imageUrl")
            return {"type": "inputImage", "imageUrl": str(url.get("url") if isinstance(url, Mapping) else url)}
        case "input_text" | "output_text" | "text" | "inputText":
            return {"type": "inputText", "text": str(part.get("text", ""))}
        case _:
            return {"type": "inputText", "text": json.dumps(dict(part), ensure_ascii=False)}
