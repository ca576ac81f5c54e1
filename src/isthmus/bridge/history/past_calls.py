"""A call item → the name and the JSON arguments under which the model made it.

The client stored its own item type; upstream every call is a function call, so each type goes back
to the arguments that `restore` once read it from. Arguments that are no JSON object would be refused by
many providers on every later turn, so they are replaced by one that is.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isthmus.protocol.json import JsonObject, without_nulls

_LOCAL_SHELL_FIELDS: Final = ("command", "env", "timeout_ms", "user", "working_directory")
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_call(item: JsonObject) -> tuple[str, str, str]:
    """Name, arguments and, where these had to be repaired, what was wrong with them."""
    match item["type"]:
        case "function_call":
            arguments, problem = _checked(item.get("arguments"))
            return item["name"], arguments, problem
        case "custom_tool_call":
            given = item.get("input")
            return item["name"], _json({"input": given if isinstance(given, str) else ""}), ""
        case "shell_call":
            return "shell", _json(_without_nulls(item.get("action"))), ""
        case "local_shell_call":
            action = _without_nulls(item.get("action"))
            kept = {field: action[field] for field in _LOCAL_SHELL_FIELDS if field in action}
            if kept.get("env") == {}:
                del kept["env"]  # `restore` adds the empty one; the model never wrote it
            return "local_shell", _json(kept), ""
        case "program":
            return "program", _json({"code": item.get("code") or ""}), ""
        case "apply_patch_call":
            return "apply_patch", _json({"operation": item.get("operation") or {}}), ""
        case _:
            given = item.get("arguments")
            if isinstance(given, dict):
                return "tool_search", _json(given), ""
            arguments, problem = _checked(given)
            return "tool_search", arguments, problem


def _checked(given: Any) -> tuple[str, str]:
    """Argument text kept byte for byte when it is a JSON object."""
    if given is None:
        return "{}", ""
    if not isinstance(given, str):
        return _json({"_raw": _json(given)}), "the arguments are not a JSON object"
    try:
        _OBJECT.decode(given)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        if given.strip() in ("", "null"):
            return "{}", "the arguments are empty"
        return _json({"_raw": given}), "the arguments are not a JSON object"
    return given, ""


def _without_nulls(action: Any) -> JsonObject:
    return without_nulls(action) if isinstance(action, dict) else {}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
