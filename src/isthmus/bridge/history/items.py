"""One item of the model's own → what it was: a call with its arguments, a thought, a summary of what came before.

The client stored its own item type; upstream every call is a function call, so each type goes back to the arguments
that `restore` once read it from. Arguments that are no JSON object would be refused by many providers on every later
turn, so they are replaced by one that is. Of reasoning there is what it holds in the clear, and what our own envelope
keeps for us: one that does not open (another vendor's, or a forged one) is left out with a decision, since upstream
it would be refused. One that we sealed for another provider gives its text, not its state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDecision, decide_item
from isthmus.bridge.envelope import Sealed, unseal
from isthmus.bridge.history.parts import text_of, texts_of
from isthmus.bridge.types.history import Said, Thought, Words, join_texts
from isthmus.protocol.json import JsonObject, without_nulls

SUMMARY_NOTE: Final = "[summary of the conversation so far]"
_LOCAL_SHELL_FIELDS: Final = ("command", "env", "timeout_ms", "user", "working_directory")
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_call(item: JsonObject) -> tuple[str, str, str]:
    """Name, arguments and, where these had to be repaired, what was wrong with them."""
    kind, given, action = item["type"], item.get("arguments"), item.get("action")
    action = without_nulls(action) if isinstance(action, dict) else {}
    match kind:
        case "function_call":
            return item["name"], *_checked(given)
        case "custom_tool_call":
            return item["name"], write_json({"input": text_of(item, "input")}), ""
        case "shell_call":
            return "shell", write_json(action), ""
        case "local_shell_call":
            kept = {field: action[field] for field in _LOCAL_SHELL_FIELDS if field in action}
            if kept.get("env") == {}:
                del kept["env"]  # `restore` adds the empty one; the model never wrote it
            return "local_shell", write_json(kept), ""
        case "program":
            return "program", write_json({"code": item.get("code") or ""}), ""
        case "apply_patch_call":
            return "apply_patch", write_json({"operation": item.get("operation") or {}}), ""
        case _:
            return "tool_search", *((write_json(given), "") if isinstance(given, dict) else _checked(given))


def _checked(given: Any) -> tuple[str, str]:
    """Argument text kept byte for byte when it is a JSON object."""
    if given is None:
        return "{}", ""
    if not isinstance(given, str):
        return write_json({"_raw": write_json(given)}), "the arguments are not a JSON object"
    try:
        _OBJECT.decode(given)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if given.strip() in ("", "null"):
            return "{}", "the arguments are empty"
        return write_json({"_raw": given}), "the arguments are not a JSON object"
    return given, ""


def write_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def read_thought(
    item: JsonObject, path: str, envelope_key: bytes | None, provider: str, decisions: list[CompatibilityDecision]
) -> tuple[Thought, Mapping[str, Any]]:
    """The thought, and the vendor state of its turn's calls by the client's call id."""
    sealed = _open(item, path, envelope_key, decisions)
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
    item: JsonObject, path: str, envelope_key: bytes | None, decisions: list[CompatibilityDecision]
) -> Said | None:
    """Our own compaction expands to its text; another's cannot be read by anyone here."""
    sealed = _open(item, path, envelope_key, decisions)
    if sealed is not None and sealed.text:
        return Said("user", (Words(f"{SUMMARY_NOTE}\n{sealed.text}"),), path)
    decisions.append(decide_item(path, "ignored", "the compacted conversation in it cannot be read here"))
    return None


def _open(
    item: JsonObject, path: str, envelope_key: bytes | None, decisions: list[CompatibilityDecision]
) -> Sealed | None:
    envelope = text_of(item, "encrypted_content")
    sealed = unseal(envelope, envelope_key) if envelope and envelope_key is not None else None
    if envelope and sealed is None:
        reason = "it was not sealed by this gateway, or was changed"
        decisions.append(decide_item(f"{path}.encrypted_content", "ignored", reason))
    return sealed
