"""A provider's call becomes the item that the client asked for.

In: a whole call and the identity map. Out: the finished output item of the requested type, and what has to be said
about it. Every row has the same way out: arguments that do not fit the type come back as a plain `function_call`
under the tool's own name, so that the answer is always valid. Nothing is invented: function arguments stay verbatim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from isthmus.bridge.diagnostics import CompatibilityDiagnostic, notice
from isthmus.bridge.tools.custom_input import read_custom_input
from isthmus.bridge.tools.examine import Examined, ExamineInput, examine
from isthmus.bridge.tools.names import DEFAULT_NAMESPACE
from isthmus.bridge.types.tools import ProviderCall, RestoredCall, ToolIdentity, ToolIdentityMap
from isthmus.protocol.json import JsonObject


def restore_tool_call(
    call: ProviderCall,
    identities: ToolIdentityMap,
    *,
    item_id: str,
    status: str = "completed",
    examined: Examined | None = None,
) -> RestoredCall:
    """The output item for `call`, of the type that its tool was declared with.

    `examined` is the examination of a custom tool's input, where it was made elsewhere.
    """
    identity = find_identity(call.name, identities)
    draft = _Draft(call, item_id, status, identity, examined)
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
    return RestoredCall(_function_call(draft), tuple(draft.diagnostics))


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
    status: str
    identity: ToolIdentity | None
    examined: Examined | None = None
    diagnostics: list[CompatibilityDiagnostic] = field(default_factory=list)

    def say(self, code: str, message: str, **metadata: Any) -> None:
        facts = {"call_id": self.call.id, "tool": self.call.name, **metadata}
        self.diagnostics.append(notice(f"bridge.tool.{code}", f"output.{self.item_id}", message, **facts))

    def item(self, kind: str, **fields: Any) -> JsonObject:
        return {"type": kind, "id": self.item_id, "call_id": self.call.id, **fields, "status": self.status}

    def named_item(self, kind: str, **fields: Any) -> JsonObject:
        """An item that carries the tool's own name and, as a field of its own, its namespace."""
        if self.identity is None:
            return self.item(kind, name=self.call.name, **fields)
        item = self.item(kind, name=self.identity.requested_name, **fields)
        if self.identity.namespace not in (None, DEFAULT_NAMESPACE):
            item["namespace"] = self.identity.namespace
        return item


def _function_call(draft: _Draft) -> JsonObject:
    arguments = draft.call.arguments
    return draft.named_item("function_call", arguments=arguments if arguments.strip() else "{}")


def _restore_custom(draft: _Draft, identity: ToolIdentity) -> JsonObject | None:
    found = read_custom_input(draft.call.arguments)
    if found is None:
        return None
    whole = draft.status == "completed" and found.shape != "cut"
    verdict = draft.examined or examine(ExamineInput(identity.tool, found.text, whole))
    notes = [_SHAPE_NOTES[found.shape]] if found.shape in _SHAPE_NOTES else []
    if verdict.note:
        notes.append(verdict.note)
    if notes:
        draft.say("input_repaired", f"the input of `{identity.requested_name}` was repaired: {', '.join(notes)}")
    if verdict.state == "differs" and draft.status == "completed":
        draft.say("grammar_mismatch", f"the input of `{identity.requested_name}` is passed on, but {verdict.detail}")
    elif verdict.state == "unchecked":
        draft.say("grammar_unchecked", f"the input of `{identity.requested_name}` was not checked: {verdict.detail}")
    return draft.named_item("custom_tool_call", input=verdict.text)


_SHAPE_NOTES: Final[Mapping[str, str]] = {
    "loose": "read from broken JSON",
    "cut": "read from JSON that breaks off",
    "nested": "read from JSON inside a JSON string",
    "fenced": "removed a code fence",
}
"""Shapes that took a repair to read; another key or bare text are only other spellings."""


def _restore_shell(draft: _Draft, identity: ToolIdentity) -> JsonObject | None:
    given = _read_object(draft.call.arguments)
    commands = given.get("commands", given.get("command"))
    lines = [commands] if isinstance(commands, str) and commands else _strings(given.get("commands"))
    if not lines:
        return None
    action = {
        "commands": lines,
        "timeout_ms": _whole(given.get("timeout_ms")),
        "max_output_length": _whole(given.get("max_output_length")),
    }
    return draft.item("shell_call", action=action)


def _restore_local_shell(draft: _Draft, identity: ToolIdentity) -> JsonObject | None:
    given = _read_object(draft.call.arguments)
    wanted = given.get("command", given.get("cmd"))
    command = ["bash", "-lc", wanted] if isinstance(wanted, str) and wanted else _strings(wanted)
    if not command:
        return None
    env = given.get("env")
    names = env if isinstance(env, dict) else {}
    action: JsonObject = {
        "type": "exec",
        "command": command,
        "env": {key: value for key, value in names.items() if isinstance(value, str)},
    }
    timeout = _whole(given.get("timeout_ms"))
    if timeout is not None:
        action["timeout_ms"] = timeout
    action.update({key: given[key] for key in ("user", "working_directory") if isinstance(given.get(key), str)})
    return draft.item("local_shell_call", action=action)


def _restore_apply_patch(draft: _Draft, identity: ToolIdentity) -> JsonObject | None:
    given = _read_object(draft.call.arguments)
    inner = given.get("operation")
    operation = inner if isinstance(inner, dict) else given
    kind, path, diff = operation.get("type"), operation.get("path"), operation.get("diff")
    if not isinstance(path, str) or not path:
        return None
    match kind:
        case "delete_file":
            return draft.item("apply_patch_call", operation={"type": kind, "path": path})
        case "create_file" | "update_file" if isinstance(diff, str):
            return draft.item("apply_patch_call", operation={"type": kind, "path": path, "diff": diff})
    return None


def _restore_tool_search(draft: _Draft, identity: ToolIdentity) -> JsonObject | None:
    given = _decode_object(draft.call.arguments)
    if given is None:
        return None
    return draft.item("tool_search_call", execution="client", arguments=given)


_RESTORERS: Final[Mapping[str, Callable[[_Draft, ToolIdentity], JsonObject | None]]] = {
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
