"""Which output answers which call.

In: items. Out: the index of the output for each call index. Ids recur (some vendors start at `call_0`
every turn) and get lost, so an id alone is not enough: calls of one burst that share an id are answered
in order, and a new burst gives up what an older one left unanswered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from typing import Final

from isthmus.bridge.types.history import item_path
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

CALLS: Final[Mapping[str, str]] = {
    "function_call": "function",
    "custom_tool_call": "custom",
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
    "tool_search_call": "tool_search",
    "program": "program",
}
"""Item types that are calls the client answers, with the family they belong to."""

OUTPUTS: Final[Mapping[str, str]] = {
    "function_call_output": "function",
    "custom_tool_call_output": "custom",
    "shell_call_output": "shell",
    "local_shell_call_output": "local_shell",
    "apply_patch_call_output": "apply_patch",
    "tool_search_output": "tool_search",
    "program_output": "program",
}

_NO_ID: Final = "\0"


def pair_outputs(items: Sequence[JsonObject]) -> dict[int, int]:
    """Call index → output index. Calls and outputs that do not appear in it have no counterpart."""
    answers: dict[int, int] = {}
    waiting: dict[str, deque[int]] = {}
    bursts: dict[str, int] = {}
    orphans: dict[str, list[int]] = {}
    burst = 0
    for index, item in enumerate(items):
        kind = item["type"]
        family = CALLS.get(kind)
        if family is not None:
            if is_unnamed(item):
                continue
            key = _key(item, family)
            if bursts.get(key) == burst:
                waiting[key].append(index)
            else:
                waiting[key] = deque((index,))
                bursts[key] = burst
            continue
        family = OUTPUTS.get(kind)
        if family is not None:
            burst += 1
            key = _key(item, family)
            queue = waiting.get(key)
            if queue:
                answers[queue.popleft()] = index
            else:
                orphans.setdefault(key, []).append(index)
        elif kind == "message" and item.get("role") == "user":
            burst += 1
    _pair_early_outputs(items, answers, orphans)
    return answers


def find_calls_by_name(items: Sequence[JsonObject], stored: int = 0) -> Sequence[JsonObject]:
    """Function outputs without a `call_id` get that of the one open call that they name; the rest stays as it is.

    Only what stands before an output decides, so that the same call is found as the conversation grows.
    """
    if all(item["type"] != _BY_NAME or item.get("call_id") is not None for item in items):
        return items
    found: list[JsonObject] = []
    waiting: dict[str, JsonObject] = {}
    for index, item in enumerate(items):
        if item["type"] == "function_call" and item.get("call_id"):
            waiting[item["call_id"]] = item
        elif item["type"] == _BY_NAME:
            if item.get("call_id") is None:
                meant = [call_id for call_id, call in waiting.items() if _is_meant(item, call)]
                if len(meant) != 1:
                    raise _not_one(item, len(meant), item_path(index, stored))
                item = {**item, "call_id": meant[0]}
            waiting.pop(item["call_id"], None)
        found.append(item)
    return found


_BY_NAME: Final = "function_call_output"


def _is_meant(output: JsonObject, call: JsonObject) -> bool:
    return all(output.get(field) in (None, call.get(field)) for field in ("name", "namespace"))


def _not_one(output: JsonObject, count: int, path: str) -> RequestRefused:
    name = output.get("name")
    which = f"{count or 'no'} call(s) of `{name}` wait" if name else f"{count or 'no'} call(s) wait"
    return RequestRefused(
        f"`{path}` has no `call_id`, and {which} for an output; send the `call_id` of its call",
        code="missing_required_parameter",
        param=f"{path}.call_id",
    )


def find_late_outputs(
    items: Sequence[JsonObject], answers: Mapping[int, int], names: Set[tuple[str | None, str]]
) -> dict[int, int]:
    """Output index → call index, for calls of these tools whose output came after others had gone on talking."""
    if not names:
        return {}
    spoken = [index for index, item in enumerate(items) if item["type"] == "message"]
    return {
        output: call
        for call, output in answers.items()
        if (items[call].get("namespace"), items[call].get("name")) in names
        and any(call < index < output for index in spoken)
    }


def call_id_of(item: JsonObject) -> str:
    """The id that ties a call to its output; `local_shell_call_output` may carry it as `id`."""
    given = item.get("call_id")
    if not given and item["type"] == "local_shell_call_output":
        given = item.get("id")
    return given if isinstance(given, str) else ""


def is_unnamed(item: JsonObject) -> bool:
    """A call without a name cannot be sent: no provider accepts it, and one poisons the whole history."""
    if item["type"] not in ("function_call", "custom_tool_call"):
        return False
    name = item.get("name")
    return not isinstance(name, str) or not name.strip()


def _key(item: JsonObject, family: str) -> str:
    # Calls that the server ran itself carry no id; those are told apart by their family.
    return call_id_of(item) or f"{_NO_ID}{family}"


def _pair_early_outputs(items: Sequence[JsonObject], answers: dict[int, int], orphans: dict[str, list[int]]) -> None:
    """An output that stands before its call is still its answer, where the id leaves no doubt."""
    if not orphans:
        return
    calls: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        family = CALLS.get(item["type"])
        if family is not None and not is_unnamed(item):
            calls.setdefault(_key(item, family), []).append(index)
    for key, outputs in orphans.items():
        candidates = calls.get(key, ())
        if len(outputs) == 1 and key[0] != _NO_ID and len(candidates) == 1 and candidates[0] not in answers:
            answers[candidates[0]] = outputs[0]
