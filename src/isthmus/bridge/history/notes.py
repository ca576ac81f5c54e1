"""Items that have no counterpart in a chat: what of them is worth telling the model, in a few words.

In: an item that is neither a message, reasoning, nor a call the client answers. Out: a `Note` (who
should seem to say it, and what), or `None` with the reason why nothing is lost by leaving it out.
Base64 never gets in: where a tool's own words may carry some, it is cut out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from isthmus.bridge.diagnostics import Action
from isthmus.bridge.history.parts import read_image, text_of, texts_of
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
    kind = item["type"]
    writer = _WRITERS.get(kind)
    if writer is None:
        return _left_out(f"item type `{kind}` is not known")
    note = writer(item, path)
    return note._replace(text=_BASE64.sub("[data omitted]", note.text)) if note.text else note


_BASE64: Final = re.compile(r"data:[^,\s]{0,200};base64,[A-Za-z0-9+/_=-]*|[A-Za-z0-9+/]{256,}={0,2}")


def _left_out(reason: str, action: Action = "ignored") -> Note:
    return Note("none", "", reason, action)


def _web_search(item: JsonObject, path: str) -> Note:
    # A note would only teach the model to write such notes instead of searching.
    return _left_out("what a past web search found is in the answer that followed it")


def _file_search(item: JsonObject, path: str) -> Note:
    results = item.get("results")
    found = [
        f"{text_of(result, 'filename', 'file_id') or 'file'}: {' '.join(text)}"
        for result in (results if isinstance(results, list) else ())
        if isinstance(result, dict) and (text := texts_of(result.get("text")) or texts_of(result.get("content")))
    ]
    if not found:
        return _left_out("the past file search recorded no results")
    asked = ", ".join(text for text in _strings(item.get("queries")))
    return _assistant(f"[file search for {asked or 'the question'} found]\n" + "\n".join(found), "file search")


def _computer_call(item: JsonObject, path: str) -> Note:
    actions = item.get("actions") or item.get("action") or {}
    return _assistant(f"[computer action: {_json(actions)}]", "computer call")


def _computer_output(item: JsonObject, path: str) -> Note:
    output = item.get("output")
    image = read_image(output, f"{path}.output") if isinstance(output, dict) else None
    reason = "the computer tool has no counterpart; the screenshot became a user note"
    return Note("user", "[screenshot after the computer action]", reason, image=image)


def _code_interpreter(item: JsonObject, path: str) -> Note:
    code = text_of(item, "code")
    outputs = item.get("outputs")
    logs = [
        text_of(output, "logs") or f"[{text_of(output, 'type') or 'output'} omitted]"
        for output in (outputs if isinstance(outputs, list) else ())
        if isinstance(output, dict)
    ]
    if not code and not logs:
        return _left_out("the past code interpreter call is empty")
    return _assistant(
        "\n".join(["[ran code]", code, *(["[its output]", *logs] if logs else [])]), "code interpreter call"
    )


def _image_generation(item: JsonObject, path: str) -> Note:
    prompt = text_of(item, "revised_prompt", "prompt")
    return _assistant(f"[generated an image: {prompt}]" if prompt else "[generated an image]", "generated image")


def _mcp_call(item: JsonObject, path: str) -> Note:
    head = f"[called {_mcp_name(item)} with {text_of(item, 'arguments') or '{}'}]"
    error = item.get("error")
    failure = error if isinstance(error, str) else _json(error) if error else ""
    return _assistant(
        "\n".join(line for line in (head, text_of(item, "output"), failure and f"[it failed: {failure}]") if line),
        "MCP call",
    )


def _mcp_approval_request(item: JsonObject, path: str) -> Note:
    asked = f"[asked for approval to call {_mcp_name(item)} with {text_of(item, 'arguments') or '{}'}]"
    return _assistant(asked, "MCP approval request")


def _mcp_approval_response(item: JsonObject, path: str) -> Note:
    verdict, why = "approved" if item.get("approve") else "denied", text_of(item, "reason")
    reason = "MCP approvals have no counterpart; the answer became a user note"
    return Note("user", f"[the tool call was {verdict}{': ' + why if why else ''}]", reason)


def _mcp_list_tools(item: JsonObject, path: str) -> Note:
    return _left_out("the tools of an MCP server are offered by the tool plan, not by the history")


def _agent_message(item: JsonObject, path: str) -> Note:
    text = "\n".join(texts_of(item.get("content"))) or text_of(item, "text", "message")
    if not text:
        return _left_out("the agent message holds no text that can be read here")
    author, recipient = text_of(item, "author"), text_of(item, "recipient")
    head = f"message from agent {author}" if author else "agent message"
    reason = "messages between agents have no counterpart; the text became a user note"
    return Note("user", f"[{head}{f' to {recipient}' if recipient else ''}]\n{text}", reason)


def _compaction_trigger(item: JsonObject, path: str) -> Note:
    return _left_out("compaction is the host's work; the model is not told of it")


def _additional_tools(item: JsonObject, path: str) -> Note:
    return _left_out("its tools are part of the tool plan", "supported")


def _configuration_update(item: JsonObject, path: str) -> Note:
    return _left_out("the last of its settings are in force; the model is not told of them", "supported")


_WRITERS: Final[Mapping[str, Callable[[JsonObject, str], Note]]] = {
    "additional_tools": _additional_tools,
    "configuration_update": _configuration_update,
    "web_search_call": _web_search,
    "file_search_call": _file_search,
    "computer_call": _computer_call,
    "computer_call_output": _computer_output,
    "code_interpreter_call": _code_interpreter,
    "image_generation_call": _image_generation,
    "mcp_list_tools": _mcp_list_tools,
    "mcp_call": _mcp_call,
    "mcp_approval_request": _mcp_approval_request,
    "mcp_approval_response": _mcp_approval_response,
    "agent_message": _agent_message,
    "compaction_trigger": _compaction_trigger,
}


def _assistant(text: str, what: str) -> Note:
    return Note("assistant", text, f"a past {what} has no counterpart; it became a note in the assistant's turn")


def _mcp_name(item: JsonObject) -> str:
    server, name = text_of(item, "server_label"), text_of(item, "name") or "a tool"
    return f"{server}.{name}" if server else name


def _strings(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
