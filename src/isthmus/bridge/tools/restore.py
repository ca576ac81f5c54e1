"""A provider's call becomes the item that the client asked for.

In: a whole call and the identity map. Out: the finished output item of the requested type, and what has to be said
about it. Every row has the same way out: arguments that do not fit the type come back as a plain `function_call`
under the tool's own name, so that the answer is always valid. Nothing is invented: function arguments stay verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.catalog import DEFAULT_NAMESPACE
from isthmus.bridge.tools.computer import read_actions
from isthmus.bridge.tools.custom_input import CustomInput, read_custom_input
from isthmus.bridge.tools.examine import Examined, ExamineInput, examine
from isthmus.bridge.tools.search import runs_here
from isthmus.bridge.types.tools import ProviderCall, RestoredCall, ToolIdentity, ToolIdentityMap
from isthmus.protocol import items
from isthmus.protocol.items import CallItem, CustomToolCall, FunctionCall, Status
from isthmus.protocol.json import JsonObject, read_json

_MOST_NAMES: Final = 8


def restore_tool_call(
    call: ProviderCall,
    identity: ToolIdentity | None,
    *,
    read: CustomInput | None = None,
    examined: Examined | None = None,
) -> RestoredCall:
    """The output item for `call`, of the type that its tool (see `find_identity`) was declared with; its id is open.
    `read` and `examined` are a custom tool's input, where somebody has read and examined it already."""
    draft = _Draft(call)
    item: CallItem | None = None
    if identity is None:
        draft.say("unknown_call", f"the model called `{call.name}`, which was never declared")
    elif identity.provider_type not in ("function", "custom"):
        draft.say("unknown_call", f"the model called `{call.name}`, which the provider should have run itself")
    elif runs_here(identity.requested_type, identity.tool):
        # A search that is carried out here: whatever the model said can be looked for.
        found = _decode_object(call.arguments)
        item = _shape_search(None, "server", {"query": call.arguments} if found is None else found)
    elif identity.requested_type == "custom" or identity.requested_type in _RESTORERS:
        if identity.requested_type == "custom":
            item = _restore_custom(draft, identity, read or read_custom_input(call.arguments), examined)
        elif (given := _decode_object(call.arguments)) is not None:
            item = _RESTORERS[identity.requested_type](draft, given)
        if item is None:
            kind = identity.requested_type
            draft.say("call_fallback", f"the arguments do not fit a `{kind}` call; passed on as a `function_call`")
    if item is None:
        arguments = call.arguments if call.arguments.strip() else "{}"
        item = shape_call("function_call", arguments, call, identity)
    return RestoredCall(item, tuple(draft.diagnostics))


def shape_call(
    kind: Literal["function_call", "custom_tool_call"],
    text: str,
    call: ProviderCall,
    identity: ToolIdentity | None,
    *,
    item_id: str = "",
    status: Status = "completed",
) -> FunctionCall | CustomToolCall:
    """A call under its tool's own name and, as a field of its own, its namespace."""
    name = call.name if identity is None else identity.requested_name
    item: FunctionCall | CustomToolCall
    if kind == "function_call":
        item = {"type": kind, "id": item_id, "call_id": call.id, "name": name, "arguments": text, "status": status}
    else:
        item = {"type": kind, "id": item_id, "call_id": call.id, "name": name, "input": text, "status": status}
    if identity is not None and identity.namespace is not None and identity.namespace != DEFAULT_NAMESPACE:
        item["namespace"] = identity.namespace
    return item


def find_identity(name: str, identities: ToolIdentityMap) -> ToolIdentity | None:
    """The tool that a model means, also when it spells the name in a way of its own."""
    exact = identities.by_provider_name(name)
    if exact is not None:
        return exact
    wanted = name.strip()
    found = [] if wanted else [identity for identity in identities if identity.provider_type == "function"]
    found = found or [identity for identity in identities if wanted in _flat_spellings(identity)]
    found = found or [identity for identity in identities if wanted == identity.requested_name]
    folded = wanted.casefold()
    for identity in identities if not found else ():
        spellings = (identity.provider_name, identity.requested_name, *_flat_spellings(identity))
        if folded in map(str.casefold, spellings):
            found.append(identity)
    return found[0] if len(found) == 1 else None


def _flat_spellings(identity: ToolIdentity) -> tuple[str, ...]:
    space, name = identity.namespace or DEFAULT_NAMESPACE, identity.requested_name
    own = (f"{space}.{name}", f"{space}/{name}", f"{space}:{name}", f"{space}__{name}")
    return (*own, f"{DEFAULT_NAMESPACE}.{identity.provider_name}", f"{DEFAULT_NAMESPACE}/{identity.provider_name}")


class _Draft(msgspec.Struct):
    call: ProviderCall
    diagnostics: list[CompatibilityDiagnostic] = []

    def say(self, code: str, message: str) -> None:
        said = notice(f"bridge.tool.{code}", "output", message, call_id=self.call.id, tool=self.call.name)
        self.diagnostics.append(said)

    def leave_out(self, given: JsonObject, *used: str) -> None:
        """Arguments that the item has no place for."""
        self.say_ignored(tuple(name for name, value in given.items() if name not in used and value is not None))

    def say_ignored(self, names: tuple[str, ...]) -> None:
        if names:
            shown = ", ".join(f"`{name[:64]}`" for name in names[:_MOST_NAMES])
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            self.say("arguments_ignored", f"a call of this tool has no place for {shown}{more}")


def _restore_custom(
    draft: _Draft, identity: ToolIdentity, found: CustomInput | None, examined: Examined | None
) -> CallItem | None:
    # A text that broke off must not look complete: a client would run half of it.
    if found is None or found.shape == "cut":
        return None
    verdict = examined or examine(ExamineInput(identity.tool, found.text))
    whose = f"the input of `{identity.requested_name}`"
    notes = [note for note in (_SHAPE_NOTES.get(found.shape), verdict.note) if note]
    if notes:
        draft.say("input_repaired", f"{whose} was repaired: {', '.join(notes)}")
    draft.say_ignored(found.ignored)
    if verdict.state == "differs":
        draft.say("grammar_mismatch", f"{whose} is passed on, but {verdict.detail}")
    elif verdict.state == "unchecked":
        draft.say("grammar_unchecked", f"{whose} was not checked: {verdict.detail}")
    return shape_call("custom_tool_call", verdict.text, draft.call, identity)


_SHAPE_NOTES: Final[Mapping[str, str]] = {
    "loose": "read from broken JSON",
    "nested": "read from JSON inside a JSON string",
    "fenced": "removed a code fence",
}
"""Shapes that took a repair to read; another key or bare text are only other spellings."""


def _restore_shell(draft: _Draft, given: JsonObject) -> items.ShellCall | None:
    commands = given.get("commands", given.get("command"))
    lines = [commands] if isinstance(commands, str) and commands else _strings(given.get("commands"))
    if not lines:
        return None
    timeout, most = _whole(given.get("timeout_ms")), _whole(given.get("max_output_length"))
    action: items.ShellAction = {"commands": lines, "timeout_ms": timeout, "max_output_length": most}
    used = [name for name, value in action.items() if value is not None]
    draft.leave_out(given, *used, *(() if "commands" in given else ("command",)))
    return {"type": "shell_call", "id": "", "call_id": draft.call.id, "status": "completed", "action": action}


def _restore_local_shell(draft: _Draft, given: JsonObject) -> items.LocalShellCall | None:
    wanted = given.get("command", given.get("cmd"))
    command = ["bash", "-lc", wanted] if isinstance(wanted, str) and wanted else _strings(wanted)
    if not command:
        return None
    names = env if isinstance(env := given.get("env"), dict) else {}
    kept = {key: value for key, value in names.items() if isinstance(value, str)}
    draft.say_ignored(tuple(f"env.{key}" for key in names if key not in kept))
    action: items.LocalShellAction = {"type": "exec", "command": command, "env": kept}
    if (timeout := _whole(given.get("timeout_ms"))) is not None:
        action["timeout_ms"] = timeout
    if isinstance(user := given.get("user"), str):
        action["user"] = user
    if isinstance(folder := given.get("working_directory"), str):
        action["working_directory"] = folder
    draft.leave_out(given, "command" if "command" in given else "cmd", "env", *action)
    return {"type": "local_shell_call", "id": "", "call_id": draft.call.id, "status": "completed", "action": action}


def _restore_apply_patch(draft: _Draft, given: JsonObject) -> items.ApplyPatchCall | None:
    inner = given.get("operation")
    asked = inner if isinstance(inner, dict) else given
    kind, path, diff = asked.get("type"), asked.get("path"), asked.get("diff")
    if not isinstance(path, str) or not path:
        return None
    operation: items.PatchOperation
    match kind:
        case "delete_file":
            operation = {"type": "delete_file", "path": path}
        case "create_file" | "update_file" if isinstance(diff, str):
            operation = {"type": kind, "path": path, "diff": diff}
        case _:
            return None
    # The function's schema makes `diff` required: one that deletes has an empty one.
    draft.leave_out({name: value for name, value in asked.items() if value != ""}, *operation)
    if asked is inner:
        draft.leave_out(given, "operation")
    id = draft.call.id
    return {"type": "apply_patch_call", "id": "", "call_id": id, "status": "completed", "operation": operation}


def _shape_search(
    call_id: str | None, execution: Literal["server", "client"], given: JsonObject
) -> items.ToolSearchCall:
    return {
        "type": "tool_search_call",
        "id": "",
        "call_id": call_id,
        "status": "completed",
        "execution": execution,
        "arguments": given,
    }


def _restore_computer(draft: _Draft, given: JsonObject) -> items.ComputerCall | None:
    actions = read_actions(given)
    if actions is None:
        return None
    id = draft.call.id
    return {
        "type": "computer_call",
        "id": "",
        "call_id": id,
        "status": "completed",
        "pending_safety_checks": [],
        "actions": actions,
    }


def _restore_one_action(draft: _Draft, given: JsonObject) -> items.ComputerCall | None:
    item = _restore_computer(draft, given)
    if item is None or len(item["actions"]) > 1:  # the older tool does one thing at a time
        return None
    (action,) = item.pop("actions")
    item["action"] = action
    return item


_RESTORERS: Final[Mapping[str, Callable[[_Draft, JsonObject], CallItem | None]]] = {
    "shell": _restore_shell,
    "local_shell": _restore_local_shell,
    "apply_patch": _restore_apply_patch,
    "computer": _restore_computer,
    "computer_use_preview": _restore_one_action,
    "tool_search": lambda draft, given: _shape_search(draft.call.id, "client", given),
}


def _decode_object(arguments: str) -> JsonObject | None:
    """Arguments as an object, also when they were encoded twice."""
    value = read_json(arguments)
    value = read_json(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else None


def _strings(value: Any) -> list[str]:
    return value if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else []


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 2**53:
        return None
    return int(value)
