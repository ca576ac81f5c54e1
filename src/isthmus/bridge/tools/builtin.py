"""Functions that stand in for tool types a Chat-Completions provider does not know.

In: a tool of the client. Out: the description and the JSON Schema of the function that the model sees
instead. The schemas are as strict as the item that the call will become again (see `restore`): what
passes the schema can be restored. Custom tools become one string, `input`, with the grammar in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.bridge.tools.computer import COMPUTERS, describe_computer
from isthmus.bridge.tools.shapes import closed, field
from isthmus.bridge.types.tools import CatalogTool
from isthmus.protocol.json import JsonObject

PATCH_BEGIN: Final = "*** Begin Patch"
PATCH_END: Final = "*** End Patch"
_PATCH_EXAMPLE: Final = r"""A complete call that changes one file and adds another:
{"input": "*** Begin Patch\n*** Update File: src/greet.py\n@@ def greet(name):\n-    print(\"Hi\")\n+    print(f\"Hello, {name}\")\n*** Add File: docs/greet.txt\n+How to greet.\n*** End Patch\n"}
Unchanged lines inside a hunk begin with one space, removed ones with `-`, added ones with `+`."""  # noqa: E501


def describe_as_function(tool: CatalogTool) -> tuple[str, Any]:
    own, parameters = _own_words(tool), tool.tool.get("parameters")
    match tool.type:
        case "function":
            return own, parameters
        case "custom":
            return _describe_custom(tool, own), _CUSTOM
        case "mcp":
            return _describe_mcp(tool)
        case kind if kind in COMPUTERS:
            return describe_computer(kind, tool.tool)
        case "tool_search":
            words = "Find further tools by what they do. Those that are found can be called afterwards."
            return own or words, parameters or _TOOL_SEARCH
    words, schema = _STAND_INS.get(tool.type) or (f"The tool `{tool.name}`.", parameters)
    return own or words, schema


def expects_patch(tool: Mapping[str, Any]) -> bool:
    """Whether a custom tool's input is a patch between `*** Begin Patch` and `*** End Patch` lines."""
    given = tool.get("format")
    if isinstance(given, dict) and given.get("type") == "grammar":
        return given.get("syntax") == "lark" and PATCH_BEGIN in str(given.get("definition", ""))
    return tool.get("type") == "custom" and tool.get("name") == "apply_patch"


def _describe_custom(tool: CatalogTool, own: str) -> str:
    parts = [
        own or f"The free-text tool `{tool.name}`.",
        "Call it as a function with one argument, `input`: the complete text for the tool, exactly as the tool "
        "should receive it. Whatever is said above about not using JSON is about the text inside `input`; "
        "put no code fence, quotes or shell command around it.",
        _format_words(tool.tool.get("format")),
    ]
    if expects_patch(tool.tool):
        parts.append(_PATCH_EXAMPLE)
    return "\n\n".join(parts)


def _format_words(given: Any) -> str:
    if not isinstance(given, dict) or given.get("type") != "grammar":
        return "Any text is accepted as `input`."
    definition = str(given.get("definition", "")).strip()
    if given.get("syntax") == "regex":
        return f"The whole `input` must match this regular expression:\n{definition}"
    return f"`input` must follow this {given.get('syntax') or ''} grammar, whose first rule is `start`:\n{definition}"


def _describe_mcp(tool: CatalogTool) -> tuple[str, JsonObject]:
    about = tool.tool.get("server_description")
    words = f"Call a tool of the MCP server `{tool.name}`." + (f" {about}" if about else "")
    allowed = tool.tool.get("allowed_tools")
    names = allowed.get("tool_names") if isinstance(allowed, dict) else allowed
    name = field("string", "The tool's name on that server.")
    if isinstance(names, list) and names:
        name["enum"] = names
    return words, closed({"name": name, "arguments": field("object", "The arguments for that tool.")}, "arguments")


def _own_words(tool: CatalogTool) -> str:
    own = str(tool.tool.get("description") or "")
    if not tool.namespace_description:
        return own
    about = f"Part of `{tool.namespace}`: {tool.namespace_description}"
    return f"{about}\n\n{own}" if own else about


def _strings(description: str, **limits: Any) -> JsonObject:
    return field("array", description, items={"type": "string"}, **limits)


def _operation(kind: str, **diff: str) -> JsonObject:
    told = {"path": "Path of the file.", **diff}
    texts = {name: field("string", words, minLength=1) for name, words in told.items()}
    return closed({"type": {"type": "string", "const": kind}, **texts}, *texts)


_INPUT: Final = field("string", "The complete input text for the tool.")
_CUSTOM: Final = {"type": "object", "properties": {"input": _INPUT}, "required": ["input"]}
_TOOL_SEARCH: Final = closed({"query": field("string", "What the tool should do.")})
_WEB_SEARCH: Final = (
    "Search the web and get the best results with their addresses.",
    closed({"query": field("string", "What to search for."), "queries": _strings("Further wordings to search for.")}),
)
_WEB_SEARCHES: Final = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
# Tool types whose calls have a shape of their own: what the model is told, unless the client has words for it.
_STAND_INS: Final[Mapping[str, tuple[str, JsonObject]]] = {
    "local_shell": (
        "Run one program on the user's machine and get its output. `command` is the argument list, without a "
        'shell in between; for pipes or globbing call a shell: ["bash", "-lc", "ls *.py | wc -l"].',
        closed(
            {
                "command": _strings("The program and its arguments, one entry each.", minItems=1),
                "env": field("object", "Environment variables to set.", additionalProperties={"type": "string"}),
                "timeout_ms": field("number", "Stop the program after this many milliseconds.", minimum=1),
                "user": field("string", "The user to run it as."),
                "working_directory": field("string", "The directory to run it in."),
            }
        ),
    ),
    "shell": (
        "Run shell commands and get the output of each. Every entry of `commands` is one complete command line; "
        "they may run at the same time, so join steps that depend on each other with `&&`.",
        closed(
            {
                "commands": _strings("The command lines to run.", minItems=1),
                "timeout_ms": field("number", "Stop the commands after this many milliseconds.", minimum=1),
                "max_output_length": field(
                    "number", "Return at most this many characters of output per command.", minimum=1
                ),
            }
        ),
    ),
    "apply_patch": (
        "Create, change or delete one file. Diffs are in the V4A manner: no line numbers; a hunk opens with `@@` "
        "and, where it helps, the enclosing function or class; then unchanged lines with a leading space, removed "
        "ones with `-`, added ones with `+`. For a new file every line begins with `+`.",
        closed(
            {
                "operation": {
                    "type": "object",
                    "description": "What to do with which file.",
                    "oneOf": [
                        _operation("create_file", diff="The new file's lines, each with a leading `+`."),
                        _operation("update_file", diff="The hunks to apply, as a V4A diff."),
                        _operation("delete_file"),
                    ],
                }
            }
        ),
    ),
    **dict.fromkeys(_WEB_SEARCHES, _WEB_SEARCH),
}
