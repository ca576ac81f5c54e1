"""Functions that stand in for tool types a Chat-Completions provider does not know.

In: a tool of the client. Out: the description and the JSON Schema of the function that the model sees
instead. The schemas are as strict as the item that the call will become again (see `restore`): what
passes the schema can be restored. Custom tools become one string, `input`, with the grammar in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from isthmus.bridge.types.tools import CatalogTool
from isthmus.protocol.json import JsonObject

PATCH_BEGIN: Final = "*** Begin Patch"
PATCH_END: Final = "*** End Patch"


def describe_as_function(tool: CatalogTool) -> tuple[str, Any]:
    """Description and parameters of the function that stands in for `tool`."""
    describe = _DESCRIBERS.get(tool.type, _describe_other)
    return describe(tool)


def expects_patch(tool: Mapping[str, Any]) -> bool:
    """Whether a custom tool's input is a patch between `*** Begin Patch` and `*** End Patch` lines."""
    given = tool.get("format")
    if isinstance(given, dict) and given.get("type") == "grammar":
        return given.get("syntax") == "lark" and PATCH_BEGIN in str(given.get("definition", ""))
    return tool.get("type") == "custom" and tool.get("name") == "apply_patch"


def _describe_function(tool: CatalogTool) -> tuple[str, Any]:
    return _own_words(tool), tool.tool.get("parameters")


def _describe_custom(tool: CatalogTool) -> tuple[str, JsonObject]:
    parts = [
        _own_words(tool) or f"The free-text tool `{tool.name}`.",
        "Call it as a function with one argument, `input`: the complete text for the tool, exactly as the tool "
        "should receive it. Whatever is said above about not using JSON is about the text inside `input`; "
        "put no code fence, quotes or shell command around it.",
        *_format_words(tool.tool.get("format")),
    ]
    if expects_patch(tool.tool):
        parts.append(_PATCH_EXAMPLE)
    parameters = {
        "type": "object",
        "properties": {"input": {"type": "string", "description": "The complete input text for the tool."}},
        "required": ["input"],
    }
    return "\n\n".join(parts), parameters


def _format_words(given: Any) -> list[str]:
    if not isinstance(given, dict) or given.get("type") != "grammar":
        return ["Any text is accepted as `input`."]
    definition = str(given.get("definition", "")).strip()
    if given.get("syntax") == "regex":
        return [f"The whole `input` must match this regular expression:\n{definition}"]
    return [f"`input` must follow this {given.get('syntax') or ''} grammar, whose first rule is `start`:\n{definition}"]


_PATCH_EXAMPLE: Final = r"""A complete call that changes one file and adds another:
{"input": "*** Begin Patch\n*** Update File: src/greet.py\n@@ def greet(name):\n-    print(\"Hi\")\n+    print(f\"Hello, {name}\")\n*** Add File: docs/greet.txt\n+How to greet.\n*** End Patch\n"}
Unchanged lines inside a hunk begin with one space, removed ones with `-`, added ones with `+`."""  # noqa: E501


def _describe_tool_search(tool: CatalogTool) -> tuple[str, Any]:
    words = _own_words(tool) or "Find further tools by what they do. Those that are found can be called afterwards."
    return words, tool.tool.get("parameters") or _TOOL_SEARCH


def _describe_local_shell(tool: CatalogTool) -> tuple[str, JsonObject]:
    return (
        _own_words(tool)
        or "Run one program on the user's machine and get its output. `command` is the argument list, without a "
        'shell in between; for pipes or globbing call a shell: ["bash", "-lc", "ls *.py | wc -l"].',
        _LOCAL_SHELL,
    )


def _describe_shell(tool: CatalogTool) -> tuple[str, JsonObject]:
    return (
        _own_words(tool)
        or "Run shell commands and get the output of each. Every entry of `commands` is one complete command line; "
        "they may run at the same time, so join steps that depend on each other with `&&`.",
        _SHELL,
    )


def _describe_apply_patch(tool: CatalogTool) -> tuple[str, JsonObject]:
    return (
        _own_words(tool)
        or "Create, change or delete one file. Diffs are in the V4A manner: no line numbers; a hunk opens with `@@` "
        "and, where it helps, the enclosing function or class; then unchanged lines with a leading space, removed "
        "ones with `-`, added ones with `+`. For a new file every line begins with `+`.",
        _APPLY_PATCH,
    )


def _describe_web_search(tool: CatalogTool) -> tuple[str, JsonObject]:
    return _own_words(tool) or "Search the web and get the best results with their addresses.", _WEB_SEARCH


def _describe_mcp(tool: CatalogTool) -> tuple[str, JsonObject]:
    about = tool.tool.get("server_description")
    words = f"Call a tool of the MCP server `{tool.name}`." + (f" {about}" if about else "")
    allowed = tool.tool.get("allowed_tools")
    names = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
    name: JsonObject = {"type": "string", "description": "The tool's name on that server."}
    if isinstance(names, list) and names:
        name["enum"] = names
    arguments = {"type": "object", "description": "The arguments for that tool."}
    return words, _closed({"name": name, "arguments": arguments}, ["name", "arguments"])


def _describe_other(tool: CatalogTool) -> tuple[str, Any]:
    return _own_words(tool) or f"The tool `{tool.name}`.", tool.tool.get("parameters")


def _own_words(tool: CatalogTool) -> str:
    own = str(tool.tool.get("description") or "")
    if not tool.namespace_description:
        return own
    about = f"Part of `{tool.namespace}`: {tool.namespace_description}"
    return f"{about}\n\n{own}" if own else about


def _closed(properties: JsonObject, required: list[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _strings(description: str) -> JsonObject:
    return {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": description}


def _number(description: str) -> JsonObject:
    return {"type": "number", "minimum": 1, "description": description}


def _text(description: str) -> JsonObject:
    return {"type": "string", "minLength": 1, "description": description}


_LOCAL_SHELL: Final = _closed(
    {
        "command": _strings("The program and its arguments, one entry each."),
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Environment variables to set.",
        },
        "timeout_ms": _number("Stop the program after this many milliseconds."),
        "user": {"type": "string", "description": "The user to run it as."},
        "working_directory": {"type": "string", "description": "The directory to run it in."},
    },
    ["command"],
)

_SHELL: Final = _closed(
    {
        "commands": _strings("The command lines to run."),
        "timeout_ms": _number("Stop the commands after this many milliseconds."),
        "max_output_length": _number("Return at most this many characters of output per command."),
    },
    ["commands"],
)


def _operation(kind: str, diff: str | None) -> JsonObject:
    properties: JsonObject = {"type": {"type": "string", "const": kind}, "path": _text("Path of the file.")}
    if diff is not None:
        properties["diff"] = _text(diff)
    return _closed(properties, list(properties))


_APPLY_PATCH: Final = _closed(
    {
        "operation": {
            "type": "object",
            "description": "What to do with which file.",
            "oneOf": [
                _operation("create_file", "The new file's lines, each with a leading `+`."),
                _operation("update_file", "The hunks to apply, as a V4A diff."),
                _operation("delete_file", None),
            ],
        }
    },
    ["operation"],
)

_WEB_SEARCH: Final = _closed(
    {
        "query": {"type": "string", "description": "What to search for."},
        "queries": {"type": "array", "items": {"type": "string"}, "description": "Further wordings to search for."},
    },
    ["query"],
)

_TOOL_SEARCH: Final = _closed({"query": {"type": "string", "description": "What the tool should do."}}, ["query"])

_DESCRIBERS: Final[Mapping[str, Callable[[CatalogTool], tuple[str, Any]]]] = {
    "function": _describe_function,
    "custom": _describe_custom,
    "tool_search": _describe_tool_search,
    "local_shell": _describe_local_shell,
    "shell": _describe_shell,
    "apply_patch": _describe_apply_patch,
    "mcp": _describe_mcp,
    "web_search": _describe_web_search,
    "web_search_2025_08_26": _describe_web_search,
    "web_search_preview": _describe_web_search,
    "web_search_preview_2025_03_11": _describe_web_search,
}
