"""Arguments for a tool, from its schema and one step of the user's text.

In: a `Tool` and the text. Out: JSON arguments that are valid for the tool. Tools that change files or run
commands are known by their shape, whatever their name, and get what the user asked for; every other tool
is a form that is filled from the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from isthmus.demo.deeds import any_command, any_file, find_command, find_file
from isthmus.demo.question import Tool
from isthmus.demo.schema_sample import sample
from isthmus.demo.supply import Supply, sort_of, words_of
from isthmus.demo.words import Words, read_words
from isthmus.protocol.json import JsonObject

Shape = Literal["patch", "operation", "write", "shell", "form"]

_COMMAND: Final = ("cmd", "command", "commands")
_CONTENT: Final = ("content", "contents", "text", "file_text", "data")
_RUNS: Final = re.compile(r"\W*(?:please\s+)?(?:run|execute)\b", re.IGNORECASE)
_PATH: Final = ("path", "file_path", "filepath", "filename", "file", "file_name")


def fill_arguments(tool: Tool, text: str, words: Words | None = None) -> JsonObject:
    """The arguments of one call; `words` stands for the text where a list is split over several calls."""
    shape = shape_of(tool)
    properties = _properties(tool)
    file = find_file(text)
    match shape:
        case "patch":
            return {next(iter(properties), "input"): (file or any_file(text)).patch()}
        case "operation":
            wanted = file or any_file(text)
            return {"operation": {"type": "create_file", "path": wanted.path, "diff": wanted.diff()}}
        case "shell":
            return _with_command(tool, properties, text)
        case "write" if file is not None:
            path, content = (next(name for name in names if name in properties) for names in (_PATH, _CONTENT))
            return {**_required(tool, text), path: file.path, content: file.content}
    filled = sample(tool.parameters or {"type": "object"}, lambda: Supply(words or read_words(text)), full=False)
    return filled if isinstance(filled, dict) else {}


def shape_of(tool: Tool) -> Shape:
    """What kind of tool this is, by its arguments and its words."""
    properties = _properties(tool)
    strings = [name for name, schema in properties.items() if _kind(schema) == "string"]
    words = words_of(tool.name)
    if "operation" in properties and "patch" in words:
        return "operation"
    if strings and len(properties) == 1 and ("patch" in words or "*** Begin Patch" in tool.description):
        return "patch"
    if any(name in properties for name in _COMMAND):
        return "shell"
    if any(name in properties for name in _PATH) and any(name in properties for name in _CONTENT):
        return "write"
    return "form"


def list_field(tool: Tool) -> str | None:
    """The one field that a list of things can be spread over, one call for each."""
    properties = _properties(tool)
    required = tool.parameters.get("required") or list(properties)
    fields = [
        name
        for name in required
        if _kind(properties.get(name)) == "string" and "enum" not in properties[name] and sort_of(name) == "thing"
    ]
    return fields[0] if len(fields) == 1 and shape_of(tool) == "form" else None


def _properties(tool: Tool) -> Mapping[str, Any]:
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _kind(schema: Any) -> Any:
    given = schema.get("type") if isinstance(schema, dict) else None
    return given[0] if isinstance(given, list) and given else given


def _with_command(tool: Tool, properties: Mapping[str, Any], text: str) -> JsonObject:
    name = next(name for name in _COMMAND if name in properties)
    line = command_for(text)
    if _kind(properties[name]) == "array":
        # A list is the arguments of one program, unless it is named for several command lines.
        command: Any = [line] if name == "commands" else ["bash", "-lc", line]
    else:
        command = line
    return {**_required(tool, text), name: command}


def command_for(text: str) -> str:
    """A command line for any text: what was asked for, else an echo."""
    file = None if _RUNS.match(text) else find_file(text)
    return file.command() if file else find_command(text) or any_command(text)


def _required(tool: Tool, text: str) -> JsonObject:
    filled = sample(tool.parameters, lambda: Supply(read_words(text)), full=False)
    required = tool.parameters.get("required") or ()
    return {name: value for name, value in filled.items() if name in required} if isinstance(filled, dict) else {}
