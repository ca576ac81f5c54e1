"""A provider's call becomes the item that the client asked for.

In: a whole call and the identity map. Out: the finished output item of the requested type, and what has to be said
about it. Every row has the same way out: arguments that do not fit the type come back as a plain `function_call`
under the tool's own name, so that the answer is always valid. Nothing is invented: function arguments stay verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.custom_input import CustomInput, read_custom_input
from isthmus.bridge.tools.examine import Examined, ExamineInput, examine
from isthmus.bridge.tools.names import DEFAULT_NAMESPACE
from isthmus.bridge.types.tools import ProviderCall, RestoredCall, ToolIdentity, ToolIdentityMap
from isthmus.protocol.items import (
    ApplyPatchCall,
    CallItem,
    CustomToolCall,
    FunctionCall,
    LocalShellAction,
    LocalShellCall,
    ShellCall,
    Status,
    ToolSearchCall,
)
from isthmus.protocol.json import JsonObject


def restore_tool_call(
    call: ProviderCall, identities: ToolIdentityMap, *, item_id: str, status: Status = "completed"
) -> RestoredCall:
    """The output item for `call`, of the type that its tool was declared with."""
    return restore_call(call, find_identity(call.name, identities), item_id=item_id, status=status)


def restore_call(
    call: ProviderCall,
    identity: ToolIdentity | None,
    *,
    item_id: str = "",
    status: Status = "completed",
    read: CustomInput | None = None,
    examined: Examined | None = None,
) -> RestoredCall:
    """The same for a call whose tool is known; `read` and `examined` are a custom tool's input, where somebody has
    read and examined it already."""
    draft = _Draft(call, item_id, status, identity, read, examined)
    if identity is None:
        draft.say("unknown_call", f"the model called `{call.name}`, which was never declared")
    elif identity.provider_type not in ("function", "custom"):
        draft.say("unknown_call", f"the model called `{call.name}`, which the provider should have run itself")
    elif identity.requested_type in _RESTORERS:
        item = _RESTORERS[identity.requested_type](draft, identity)
        if item is not None:
            return RestoredCall(item, tuple(draft.diagnostics))
        draft.say(
            "call_fallback",
            f"the arguments do not fit a `{identity.requested_type}` call; passed on as a `function_call`",
        )
    arguments = call.arguments if call.arguments.strip() else "{}"
    item = shape_call("function_call", arguments, call, identity, item_id=item_id, status=status)
    return RestoredCall(item, tuple(draft.diagnostics))


def shape_call(
    kind: Literal["function_call", "custom_tool_call"],
    text: str,
    call: ProviderCall,
    identity: ToolIdentity | None,
    *,
    item_id: str,
    status: Status,
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
    if not wanted:
        callable_ones = [identity for identity in identities if identity.provider_type == "function"]
        return callable_ones[0] if len(callable_ones) == 1 else None
    for spell in (_flat_spellings, _bare_spelling):
        found = [identity for identity in identities if wanted in spell(identity)]
        if found:
            return found[0] if len(found) == 1 else None
    folded = wanted.casefold()
    found = [identity for identity in identities if folded in map(str.casefold, _all_spellings(identity))]
    return found[0] if len(found) == 1 else None


def _flat_spellings(identity: ToolIdentity) -> tuple[str, ...]:
    space, name = identity.namespace or DEFAULT_NAMESPACE, identity.requested_name
    own = (f"{space}.{name}", f"{space}/{name}", f"{space}:{name}", f"{space}__{name}")
    return (*own, f"{DEFAULT_NAMESPACE}.{identity.provider_name}", f"{DEFAULT_NAMESPACE}/{identity.provider_name}")


def _bare_spelling(identity: ToolIdentity) -> tuple[str, ...]:
    return (identity.requested_name,)


def _all_spellings(identity: ToolIdentity) -> tuple[str, ...]:
    return (identity.provider_name, *_flat_spellings(identity), identity.requested_name)


@dataclass(slots=True)
class _Draft:
    """One call on its way back."""

    call: ProviderCall
    item_id: str
    status: Status
    identity: ToolIdentity | None
    read: CustomInput | None = None
    examined: Examined | None = None
    diagnostics: list[CompatibilityDiagnostic] = field(default_factory=list)

    def say(self, code: str, message: str, **metadata: Any) -> None:
        facts = {"call_id": self.call.id, "tool": self.call.name, **metadata}
        self.diagnostics.append(notice(f"bridge.tool.{code}", f"output.{self.item_id}", message, **facts))

    def leave_out(self, given: JsonObject, *used: str) -> None:
        """Arguments that the item has no place for."""
        self.say_ignored(tuple(name for name, value in given.items() if name not in used and value is not None))

    def say_ignored(self, names: tuple[str, ...]) -> None:
        if names:
            shown = ", ".join(f"`{name[:64]}`" for name in names[:_MOST_NAMES])
            more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
            self.say("arguments_ignored", f"a call of this tool has no place for {shown}{more}")


_MOST_NAMES: Final = 8


def _restore_custom(draft: _Draft, identity: ToolIdentity) -> CallItem | None:
    found = draft.read or read_custom_input(draft.call.arguments)
    # A text that broke off must not look complete: a client would run half of it.
    cut = found is not None and found.shape == "cut"
    if found is None or (cut and draft.status == "completed"):
        return None
    verdict = draft.examined or examine(ExamineInput(identity.tool, found.text, not cut))
    notes = [_SHAPE_NOTES[found.shape]] if found.shape in _SHAPE_NOTES else []
    if verdict.note:
        notes.append(verdict.note)
    if notes:
        draft.say("input_repaired", f"the input of `{identity.requested_name}` was repaired: {', '.join(notes)}")
    draft.say_ignored(found.ignored)
    if verdict.state == "differs" and draft.status == "completed":
        draft.say("grammar_mismatch", f"the input of `{identity.requested_name}` is passed on, but {verdict.detail}")
    elif verdict.state == "unchecked":
        draft.say("grammar_unchecked", f"the input of `{identity.requested_name}` was not checked: {verdict.detail}")
    return shape_call(
        "custom_tool_call", verdict.text, draft.call, identity, item_id=draft.item_id, status=draft.status
    )


_SHAPE_NOTES: Final[Mapping[str, str]] = {
    "loose": "read from broken JSON",
    "nested": "read from JSON inside a JSON string",
    "fenced": "removed a code fence",
}
"""Shapes that took a repair to read; another key or bare text are only other spellings."""


def _restore_shell(draft: _Draft, identity: ToolIdentity) -> ShellCall | None:
    given = _read_object(draft.call.arguments)
    commands = given.get("commands", given.get("command"))
    lines = [commands] if isinstance(commands, str) and commands else _strings(given.get("commands"))
    if not lines:
        return None
    timeout, most = _whole(given.get("timeout_ms")), _whole(given.get("max_output_length"))
    used = ["commands" if "commands" in given else "command"]
    used += [name for name, value in (("timeout_ms", timeout), ("max_output_length", most)) if value is not None]
    draft.leave_out(given, *used)
    return {
        "type": "shell_call",
        "id": draft.item_id,
        "call_id": draft.call.id,
        "action": {"commands": lines, "timeout_ms": timeout, "max_output_length": most},
        "status": draft.status,
    }


def _restore_local_shell(draft: _Draft, identity: ToolIdentity) -> LocalShellCall | None:
    given = _read_object(draft.call.arguments)
    wanted = given.get("command", given.get("cmd"))
    command = ["bash", "-lc", wanted] if isinstance(wanted, str) and wanted else _strings(wanted)
    if not command:
        return None
    env = given.get("env")
    names = env if isinstance(env, dict) else {}
    action: LocalShellAction = {
        "type": "exec",
        "command": command,
        "env": {key: value for key, value in names.items() if isinstance(value, str)},
    }
    if len(action["env"]) < len(names):
        draft.say_ignored(tuple(f"env.{key}" for key in names if key not in action["env"]))
    timeout, user, folder = (given.get(name) for name in ("timeout_ms", "user", "working_directory"))
    if (whole := _whole(timeout)) is not None:
        action["timeout_ms"] = whole
    if isinstance(user, str):
        action["user"] = user
    if isinstance(folder, str):
        action["working_directory"] = folder
    draft.leave_out(given, "command" if "command" in given else "cmd", "env", *action)
    return {
        "type": "local_shell_call",
        "id": draft.item_id,
        "call_id": draft.call.id,
        "action": action,
        "status": draft.status,
    }


def _restore_apply_patch(draft: _Draft, identity: ToolIdentity) -> ApplyPatchCall | None:
    given = _read_object(draft.call.arguments)
    inner = given.get("operation")
    operation = inner if isinstance(inner, dict) else given
    kind, path, diff = operation.get("type"), operation.get("path"), operation.get("diff")
    if not isinstance(path, str) or not path:
        return None
    item: ApplyPatchCall
    match kind:
        case "delete_file":
            item = {
                "type": "apply_patch_call",
                "id": draft.item_id,
                "call_id": draft.call.id,
                "operation": {"type": "delete_file", "path": path},
                "status": draft.status,
            }
        case "create_file" | "update_file" if isinstance(diff, str):
            item = {
                "type": "apply_patch_call",
                "id": draft.item_id,
                "call_id": draft.call.id,
                "operation": {"type": kind, "path": path, "diff": diff},
                "status": draft.status,
            }
        case _:
            return None
    # The function's schema makes `diff` required: one that deletes has an empty one.
    draft.leave_out({name: value for name, value in operation.items() if value != ""}, *item["operation"])
    if operation is inner:
        draft.leave_out(given, "operation")
    return item


def _restore_tool_search(draft: _Draft, identity: ToolIdentity) -> ToolSearchCall | None:
    given = _decode_object(draft.call.arguments)
    ours = identity.tool.get("execution") != "client"
    if given is None and not ours:
        return None
    return {
        "type": "tool_search_call",
        "id": draft.item_id,
        "call_id": None if ours else draft.call.id,
        "execution": "server" if ours else "client",
        "arguments": {"query": draft.call.arguments} if given is None else given,
        "status": draft.status,
    }


_RESTORERS: Final[Mapping[str, Callable[[_Draft, ToolIdentity], CallItem | None]]] = {
    "custom": _restore_custom,
    "shell": _restore_shell,
    "local_shell": _restore_local_shell,
    "apply_patch": _restore_apply_patch,
    "tool_search": _restore_tool_search,
}


def _read_object(arguments: str) -> JsonObject:
    return _decode_object(arguments) or {}


def _decode_object(arguments: str) -> JsonObject | None:
    """Arguments as an object, also when they were encoded twice."""
    value: Any = arguments
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = msgspec.json.decode(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _strings(value: Any) -> list[str]:
    """A list that holds only strings; anything else counts as none."""
    return value if isinstance(value, list) and all(isinstance(entry, str) for entry in value) else []


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 2**53:
        return None
    return int(value)
