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
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
    "local_shell_call": "local_shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
    "program": "program_output",
}
"""Item types that are calls the client answers, with the type of the answer."""
OUTPUTS: Final = frozenset(CALLS.values())

_NO_ID: Final = "\0"
_NAMED: Final = ("function_call", "custom_tool_call")


def pair_outputs(items: Sequence[JsonObject], stored: int = 0) -> dict[int, int]:
    """Call index → output index. Calls and outputs that do not appear in it have no counterpart.

    A function output without a `call_id` answers the one open call that it names; only what stands before it decides,
    so that the same call is found as the conversation grows.
    """
    answers: dict[int, int] = {}
    waiting: dict[str, tuple[int, deque[int]]] = {}
    orphans: dict[str, list[int]] = {}
    unanswered: dict[str, JsonObject] = {}
    burst = 0
    for index, item in enumerate(items):
        kind = item["type"]
        if kind == "message":
            burst += item.get("role") == "user"
        elif kind in CALLS:
            given = item.get("call_id")
            key = given if isinstance(given, str) else ""
            if key and kind == "function_call":
                unanswered[key] = item
            if is_unnamed(item):
                continue
            # Calls that the server ran itself carry no id; those are told apart by their type.
            key = key or _NO_ID + CALLS[kind]
            known = waiting.get(key)
            if known is not None and known[0] == burst:
                known[1].append(index)
            else:
                waiting[key] = burst, deque((index,))
        elif kind in OUTPUTS:
            burst += 1
            key = call_id_of(item)
            if kind == "function_call_output":
                if item.get("call_id") is None:
                    key = _find_by_name(item, unanswered, item_path(index, stored))
                unanswered.pop(key, None)
            key = key or _NO_ID + kind
            known = waiting.get(key)
            if known is not None and known[1]:
                answers[known[1].popleft()] = index
            else:
                orphans.setdefault(key, []).append(index)
    if orphans:
        _answer_ahead(items, orphans, answers)
    return answers


def _answer_ahead(items: Sequence[JsonObject], orphans: Mapping[str, list[int]], answers: dict[int, int]) -> None:
    """An output that stands before its call is still its answer, where the id leaves no doubt."""
    calls: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        if item["type"] in CALLS and not is_unnamed(item):
            calls.setdefault(call_id_of(item), []).append(index)
    for key, outputs in orphans.items():
        made = calls.get(key, ())
        if len(outputs) == len(made) == 1 and key[0] != _NO_ID and made[0] not in answers:
            answers[made[0]] = outputs[0]


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
    name = item.get("name")
    return not (isinstance(name, str) and name and not name.isspace()) and item["type"] in _NAMED


def _find_by_name(output: JsonObject, unanswered: Mapping[str, JsonObject], path: str) -> str:
    meant = [
        call_id
        for call_id, call in unanswered.items()
        if all(output.get(field) in (None, call.get(field)) for field in ("name", "namespace"))
    ]
    if len(meant) == 1:
        return meant[0]
    of_name = f" of `{output['name']}`" if output.get("name") else ""
    waiting = f"`{path}` has no `call_id`, and {len(meant) or 'no'} call(s){of_name} wait for an output"
    reason = f"{waiting}; send the `call_id` of its call"
    raise RequestRefused(reason, code="missing_required_parameter", param=f"{path}.call_id")
