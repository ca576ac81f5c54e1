"""One item → what it was: a call with its arguments, a thought, a summary of what came before, or a note.

The client stored its own item type; upstream every call is a function call, so each type goes back to the arguments
that `restore` once read it from. Arguments that are no JSON object would be refused by many providers on every later
turn, so they are replaced by one that is. Of reasoning there is what it holds in the clear, and what our own envelope
keeps for us: one that does not open (another vendor's, or a forged one) is left out with a decision, since upstream
it would be refused. One that we sealed for another provider gives its text, not its state.

An item that has no counterpart in a chat becomes a `Note`: what of it is worth telling the model, in a few words.
Base64 never gets in: where a tool's own words may carry some, it is cut out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from isthmus.bridge.diagnostics import Action, CompatibilityDecision, decide_item
from isthmus.bridge.envelope import Kind, Sealed, unseal
from isthmus.bridge.history.parts import dicts_in, text_of, texts_of
from isthmus.bridge.types.history import Said, Thought, Words, join_texts
from isthmus.protocol.json import JsonObject, without_nulls, write_json

Decisions = list[CompatibilityDecision]
SUMMARY_NOTE: Final = "[summary of the conversation so far]"
_LOCAL_SHELL_FIELDS: Final = ("command", "env", "timeout_ms", "user", "working_directory")
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_call(item: JsonObject) -> tuple[str, str, str]:
    """Name, arguments and, where these had to be repaired, what was wrong with them."""
    kind, given = item["type"], item.get("arguments")
    if kind == "function_call":
        return item["name"], *_checked(given)
    if kind == "custom_tool_call":
        return item["name"], write_json({"input": text_of(item, "input")}), ""
    action = item.get("action")
    action = without_nulls(action) if isinstance(action, dict) else {}
    match kind:
        case "shell_call":
            return "shell", write_json(action), ""
        case "local_shell_call":
            kept = {field: action[field] for field in _LOCAL_SHELL_FIELDS if field in action}
            if kept.get("env") == {}:
                del kept["env"]  # `restore` adds the empty one; the model never wrote it
            return "local_shell", write_json(kept), ""
        case "program":
            return "program", write_json({"code": item.get("code") or ""}), ""
        case "computer_call":
            if actions := item.get("actions"):
                return "computer", write_json({"actions": actions}), ""
            return "computer_use_preview", write_json({"action": action}), ""
        case "apply_patch_call":
            return "apply_patch", write_json({"operation": item.get("operation") or {}}), ""
        case _:
            return "tool_search", *((write_json(given), "") if isinstance(given, dict) else _checked(given))


def _checked(given: Any) -> tuple[str, str]:
    """Argument text kept byte for byte when it is a JSON object."""
    if not isinstance(given, str):
        if given is None:
            return "{}", ""
        return write_json({"_raw": write_json(given)}), "the arguments are not a JSON object"
    try:
        _OBJECT.decode(given)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if given.strip() in ("", "null"):
            return "{}", "the arguments are empty"
        return write_json({"_raw": given}), "the arguments are not a JSON object"
    return given, ""


def read_thought(
    item: JsonObject, path: str, key: bytes | None, provider: str, decisions: Decisions, owner: str = ""
) -> tuple[Thought, Mapping[str, Any]]:
    """The thought, and the vendor state of its turn's calls by the client's call id."""
    sealed = _open(item, path, key, decisions, owner, "reasoning")
    text = join_texts(texts_of(item.get("content"))) or (sealed.text if sealed else "")
    summarised = not text
    text = text or join_texts(texts_of(item.get("summary")))
    if sealed is None or sealed.provider != provider:
        if sealed is not None and (sealed.extras or sealed.calls):
            reason = f"the vendor state in it belongs to `{sealed.provider}`"
            decisions.append(decide_item(f"{path}.encrypted_content", "ignored", reason))
        return Thought(path, text, summarised=summarised), {}
    return Thought(path, text, sealed.extras, summarised), sealed.calls


def read_compaction(
    item: JsonObject, path: str, key: bytes | None, decisions: Decisions, owner: str = ""
) -> Said | None:
    """Our own compaction expands to its text; another's cannot be read by anyone here."""
    sealed = _open(item, path, key, decisions, owner, "compaction")
    if sealed is not None and sealed.text:
        return Said("user", (Words(f"{SUMMARY_NOTE}\n{sealed.text}"),), path)
    decisions.append(decide_item(path, "ignored", "the compacted conversation in it cannot be read here"))
    return None


def _open(
    item: JsonObject, path: str, key: bytes | None, decisions: Decisions, owner: str, kind: Kind
) -> Sealed | None:
    envelope = text_of(item, "encrypted_content")
    sealed = unseal(envelope, key, owner=owner, kind=kind) if envelope and key is not None else None
    if envelope and sealed is None:
        reason = f"it is no {kind} that this gateway sealed for this caller, or it was changed"
        decisions.append(decide_item(f"{path}.encrypted_content", "ignored", reason))
    return sealed


class Note(NamedTuple):
    """`text` goes to the model in the voice of `role`; without text the item is left out. `reason` says why."""

    role: Literal["assistant", "user", "none"]
    text: str
    reason: str
    action: Action = "degraded"


def write_note(item: JsonObject, path: str) -> Note:
    kind = item["type"]
    if kind not in _WRITERS:
        return Note("none", "", *_LEFT_OUT.get(kind, (f"item type `{kind}` is not known", "ignored")))
    role, write, reason = _WRITERS[kind]
    text = _BASE64.sub("[data omitted]", write(item))
    if not text:
        return Note("none", "", _NOTHING[kind], "ignored")
    return Note(role, text, reason)


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


_NOTED: Final = "a past {} has no counterpart; it became a note in the assistant's turn"
_WRITERS: Final[Mapping[str, tuple[Literal["assistant", "user"], Callable[[JsonObject], str], str]]] = {
    "file_search_call": ("assistant", _file_search, _NOTED.format("file search")),
    "code_interpreter_call": ("assistant", _code_interpreter, _NOTED.format("code interpreter call")),
    "image_generation_call": ("assistant", _image_generation, _NOTED.format("generated image")),
    "mcp_call": ("assistant", _mcp_call, _NOTED.format("MCP call")),
    "mcp_approval_request": (
        "assistant",
        lambda item: f"[asked for approval to call {_mcp_asked(item)}]",
        _NOTED.format("MCP approval request"),
    ),
    "mcp_approval_response": (
        "user",
        _mcp_approval_response,
        "MCP approvals have no counterpart; the answer became a user note",
    ),
    "agent_message": (
        "user",
        _agent_message,
        "messages between agents have no counterpart; the text became a user note",
    ),
}
_NOTHING: Final[Mapping[str, str]] = {
    "file_search_call": "the past file search recorded no results",
    "code_interpreter_call": "the past code interpreter call is empty",
    "agent_message": "the agent message holds no text that can be read here",
}
"""Why an item is left out where there is nothing to tell."""
