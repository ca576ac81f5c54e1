"""Which output answers which call.

In: items. Out: the index of the output for each call index. Ids recur (some vendors start at `call_0`
every turn) and get lost, so an id alone is not enough: calls of one burst that share an id are answered
in order, and a new burst gives up what an older one left unanswered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from isthmus.protocol.json import JsonObject

CALLS: Final[Mapping[str, str]] = {
    "function_call": "function",
    "custom_tool_call": "custom",
    "shell_call": "shell",
    "local_shell_call": "local_shell",
    "apply_patch_call": "apply_patch",
    "tool_search_call": "tool_search",
}
"""Item types that are calls the client answers, with the family they belong to."""

OUTPUTS: Final[Mapping[str, str]] = {
    "function_call_output": "function",
    "custom_tool_call_output": "custom",
    "shell_call_output": "shell",
    "local_shell_call_output": "local_shell",
    "apply_patch_call_output": "apply_patch",
    "tool_search_output": "tool_search",
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
