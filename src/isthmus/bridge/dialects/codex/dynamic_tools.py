"""Client tools ↔ Codex dynamic tools.

Codex knows no tool choice, so a choice is carried out here by offering less: `none` offers nothing, a forced tool
offers only itself. A tool that shares its name with a Codex built-in would be accepted and then silently shadowed,
so such names never leave.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from isthmus.protocol.json import JsonObject

MAX_NAME: Final = 128

# What codex 0.163 to 0.166 may offer on its own, in any model's tool mode. A name too many here only costs
# a prefix upstream; a name too few costs the client its tool.
CODEX_TOOL_NAMES: Final = frozenset(
    (
        *("exec", "exec_command", "local_shell", "shell", "shell_command", "write_stdin", "apply_patch", "view_image"),
        *("spawn_agent", "resume_agent", "close_agent", "interrupt_agent", "list_agents", "wait_agent", "wait"),
        *("send_input", "send_message", "send_user_message_async", "followup_task", "collaboration", "multi_agent_v1"),
        *("create_goal", "get_goal", "update_goal", "update_plan", "clock", "sleep"),
        *("request_permissions", "request_user_input", "request_user_input_async"),
        *("list_mcp_resource_templates", "list_mcp_resources", "read_mcp_resource"),
        *("tool_search", "tool_suggest", "web_search", "image_generation", "functions", "multi_tool_use"),
    )
)


def build_dynamic_tools(
    definitions: Iterable[Mapping[str, Any]],
    tool_choice: str | Mapping[str, Any] | None = "auto",
    names: Mapping[str, str] | None = None,
) -> list[JsonObject]:
    """Function tools as `{name, description, inputSchema}`; `names` are those that Codex knows them by."""
    forced = tool_choice["function"]["name"] if isinstance(tool_choice, Mapping) else None
    functions = [tool["function"] for tool in definitions if tool_choice != "none"]
    return [_declare(function, names or {}) for function in functions if forced in (None, function["name"])]


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
    """A dynamic tool call as a Chat delta. Its arguments are text where the verbatim string is known, else a value."""
    tool, arguments = str(payload.get("tool") or ""), payload.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, separators=(",", ":"), ensure_ascii=False)
    function = {"name": (names or {}).get(tool, tool), "arguments": arguments}
    call_id = str(payload.get("callId") or payload.get("call_id") or "")
    return {"tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def build_tool_reply(output: str | Sequence[Mapping[str, Any]]) -> JsonObject:
    """The answer to `item/tool/call`. Only this shape reaches the model; Codex calls any other invalid."""
    parts = [{"type": "input_text", "text": output}] if isinstance(output, str) else output
    return {"contentItems": [_content_item(part) for part in parts], "success": True}


def _declare(function: Mapping[str, Any], names: Mapping[str, str]) -> JsonObject:
    described = {"description": function["description"]} if function.get("description") is not None else {}
    name = names.get(function["name"], function["name"])
    return {"name": name, **described, "inputSchema": function.get("parameters") or {}}


def _is_free(name: str) -> bool:
    return re.fullmatch(r"(?!mcp__)[a-zA-Z0-9_-]{1,128}", name) is not None and name not in CODEX_TOOL_NAMES


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
    """The message rules let text and data URLs through, nothing else."""
    if part["type"] == "input_image":
        return {"type": "inputImage", "imageUrl": part["image_url"]}
    return {"type": "inputText", "text": part["text"]}
