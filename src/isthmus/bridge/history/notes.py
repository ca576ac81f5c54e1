"""Items that have no counterpart in a chat: what of them is worth telling the model, in a few words.

In: an item that is neither a message, reasoning, nor a call the client answers. Out: a `Note` (who
should seem to say it, and what), or one without text, with the reason why nothing is lost by leaving it out.
Base64 never gets in: where a tool's own words may carry some, it is cut out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Literal, NamedTuple

from isthmus.bridge.diagnostics import Action
from isthmus.bridge.history.items import write_json
from isthmus.bridge.history.parts import dicts_in, read_image, text_of, texts_of
from isthmus.bridge.types.history import Image
from isthmus.protocol.json import JsonObject


class Note(NamedTuple):
    """`text` goes to the model in the voice of `role`; without text the item is left out. `reason` says why."""

    role: Literal["assistant", "user", "none"]
    text: str
    reason: str
    action: Action = "degraded"
    image: Image | None = None


def write_note(item: JsonObject, path: str) -> Note:
    kind, output = item["type"], item.get("output")
    writer = _WRITERS.get(kind)
    if writer is None:
        return Note("none", "", *_LEFT_OUT.get(kind, (f"item type `{kind}` is not known", "ignored")))
    text = _BASE64.sub("[data omitted]", writer.write(item))
    if not text:
        return Note("none", "", writer.nothing, "ignored")
    shown = isinstance(output, dict) and kind == "computer_call_output"
    return Note(writer.role, text, writer.reason, image=read_image(output or {}, f"{path}.output") if shown else None)


_BASE64: Final = re.compile(r"data:[^,\s]{0,200};base64,[A-Za-z0-9+/_=-]*|[A-Za-z0-9+/]{256,}={0,2}")
_LEFT_OUT: Final[Mapping[str, tuple[str, Action]]] = {
    "additional_tools": ("its tools are part of the tool plan", "supported"),
    "configuration_update": ("the last of its settings are in force; the model is not told of them", "supported"),
    # A note would only teach the model to write such notes instead of searching.
    "web_search_call": ("what a past web search found is in the answer that followed it", "ignored"),
    "mcp_list_tools": ("the tools of an MCP server are offered by the tool plan, not by the history", "ignored"),
    "compaction_trigger": ("compaction is the host's work; the model is not told of it", "ignored"),
}


def _file_search(item: JsonObject) -> str:
    found = [
        f"{text_of(result, 'filename', 'file_id') or 'file'}: {' '.join(text)}"
        for result in dicts_in(item.get("results"))
        if (text := texts_of(result.get("text")) or texts_of(result.get("content")))
    ]
    queries = item.get("queries")
    asked = ", ".join(text for text in (queries if isinstance(queries, list) else ()) if isinstance(text, str))
    return "\n".join([f"[file search for {asked or 'the question'} found]", *found]) if found else ""


def _computer_call(item: JsonObject) -> str:
    return f"[computer action: {write_json(item.get('actions') or item.get('action') or {})}]"


def _computer_output(item: JsonObject) -> str:
    return "[screenshot after the computer action]"


def _code_interpreter(item: JsonObject) -> str:
    code = text_of(item, "code")
    logs = [
        text_of(output, "logs") or f"[{text_of(output, 'type') or 'output'} omitted]"
        for output in dicts_in(item.get("outputs"))
    ]
    return "\n".join(["[ran code]", code, *(["[its output]", *logs] if logs else [])]) if code or logs else ""


def _image_generation(item: JsonObject) -> str:
    prompt = text_of(item, "revised_prompt", "prompt")
    return f"[generated an image: {prompt}]" if prompt else "[generated an image]"


def _mcp_call(item: JsonObject) -> str:
    error = item.get("error")
    failure = error if isinstance(error, str) else write_json(error) if error else ""
    lines = (f"[called {_mcp_asked(item)}]", text_of(item, "output"), failure and f"[it failed: {failure}]")
    return "\n".join(line for line in lines if line)


def _mcp_approval_request(item: JsonObject) -> str:
    return f"[asked for approval to call {_mcp_asked(item)}]"


def _mcp_asked(item: JsonObject) -> str:
    parts = (text_of(item, "server_label"), text_of(item, "name") or "a tool")
    return f"{'.'.join(filter(None, parts))} with {text_of(item, 'arguments') or '{}'}"


def _mcp_approval_response(item: JsonObject) -> str:
    verdict, why = "approved" if item.get("approve") else "denied", text_of(item, "reason")
    return f"[the tool call was {verdict}{': ' + why if why else ''}]"


def _agent_message(item: JsonObject) -> str:
    text = "\n".join(texts_of(item.get("content"))) or text_of(item, "text", "message")
    author, recipient = text_of(item, "author"), text_of(item, "recipient")
    head = f"message from agent {author}" if author else "agent message"
    return f"[{head}{f' to {recipient}' if recipient else ''}]\n{text}" if text else ""


class _Writer(NamedTuple):
    role: Literal["assistant", "user"]
    write: Callable[[JsonObject], str]
    reason: str
    nothing: str = ""
    """Why it is left out where there is nothing to tell."""


def _assistant(write: Callable[[JsonObject], str], what: str, nothing: str = "") -> _Writer:
    reason = f"a past {what} has no counterpart; it became a note in the assistant's turn"
    return _Writer("assistant", write, reason, nothing)


_WRITERS: Final[Mapping[str, _Writer]] = {
    "file_search_call": _assistant(_file_search, "file search", "the past file search recorded no results"),
    "computer_call": _assistant(_computer_call, "computer call"),
    "computer_call_output": _Writer(
        "user", _computer_output, "the computer tool has no counterpart; the screenshot became a user note"
    ),
    "code_interpreter_call": _assistant(
        _code_interpreter, "code interpreter call", "the past code interpreter call is empty"
    ),
    "image_generation_call": _assistant(_image_generation, "generated image"),
    "mcp_call": _assistant(_mcp_call, "MCP call"),
    "mcp_approval_request": _assistant(_mcp_approval_request, "MCP approval request"),
    "mcp_approval_response": _Writer(
        "user", _mcp_approval_response, "MCP approvals have no counterpart; the answer became a user note"
    ),
    "agent_message": _Writer(
        "user",
        _agent_message,
        "messages between agents have no counterpart; the text became a user note",
        "the agent message holds no text that can be read here",
    ),
}
