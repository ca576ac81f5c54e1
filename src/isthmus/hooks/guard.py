"""What a hook cannot change: by which names answers are read, and which response they belong to.

In: a value before and after a hook. Out: nothing, or `Broken`, which says what it broke. A hook that renames a tool
would have every call of it come back as somebody else's; that is told, not found out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from isthmus.bridge.assemble.output import output_text
from isthmus.bridge.assemble.retell import replay_events
from isthmus.bridge.limits import RequestLimits, check_body
from isthmus.errors import RequestRefused
from isthmus.protocol.json import NOT_JSON, JsonObject, read_json

_OF_REQUESTS: Final = ("stream", "background", "previous_response_id", "conversation")
_OF_BODIES: Final = ("model", "stream", "stream_options", "n")
_TOOLS: Final = ("tools", "functions", "dynamicTools")
_CALL_IDS: Final = ("tool_call_id", "call_id", "tool_use_id")
_CALLS: Final = ("function", "custom", "tool_use")
_OF_ITEMS: Final = ("id", "type", "name", "call_id", "namespace", "status", "encrypted_content")


class Broken(Exception):
    """What a hook gave back cannot be used."""


def check_request(read: Callable[[JsonObject], object], before: JsonObject, after: JsonObject) -> JsonObject:
    """How a request is answered, and what it continues, the door has settled by now; the rest is read anew."""
    _check_fixed(before, after, _OF_REQUESTS)
    try:
        read(after)
    except RequestRefused as error:
        raise Broken(f"it made a request that is refused: {error.message}") from error
    return after


def check_sending(limits: RequestLimits, before: JsonObject, after: JsonObject) -> JsonObject:
    _check_fixed(before, after, _OF_BODIES)
    if (was := _tool_names(before)) != (names := _tool_names(after)):
        lost, new = sorted(set(was) - set(names)), sorted(set(names) - set(was))
        raise Broken(f"it changed the names of the tools that calls are read by: {_tell(lost)} became {_tell(new)}")
    if Counter(_call_ids(before)) != Counter(_call_ids(after)):
        raise Broken("it changed the ids that join calls with their results")
    try:
        check_body(after, limits)
    except RequestRefused as error:
        raise Broken(f"it made the body too large: {error.message}") from error
    return after


def check_reply(before: JsonObject, after: JsonObject) -> JsonObject:
    """The response with what may be changed: words of its output, and whole items, which may be left out."""
    fixed = [name for name in (*before, *after) if name not in ("output", "output_text")]
    _check_fixed(before, after, fixed)
    items = after.get("output")
    if not isinstance(items, list):
        raise Broken("`output` is no list of items any more")
    waiting = iter(before["output"])
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise Broken(f"`output[{index}]` is no item any more")
        known = next((each for each in waiting if each.get("id") == item.get("id")), None)
        if known is None:
            raise Broken(f"`output[{index}]` is an item that the model did not make, or not in this place")
        _check_fixed(known, item, _OF_ITEMS, f"output[{index}].")
        _check_arguments(known, item, f"output[{index}]")
    try:
        changed = {**after, "output_text": output_text(items)}
        replay_events(changed)  # type: ignore[arg-type]  # that is what it finds out
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Broken(f"its output has items that cannot be told ({type(error).__name__})") from error
    return changed


def _check_fixed(before: JsonObject, after: JsonObject, names: Any, path: str = "") -> None:
    for name in names:
        if before.get(name) != after.get(name):
            raise Broken(f"it changed `{path}{name}`, which is settled by now")


def _check_arguments(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> None:
    was, arguments = before.get("arguments"), after.get("arguments")
    if was == arguments or not isinstance(was, str):
        return
    if not isinstance(arguments, str) or (read_json(arguments) is NOT_JSON and read_json(was) is not NOT_JSON):
        raise Broken(f"it made `{path}.arguments` what is no JSON any more")


def _tool_names(body: Mapping[str, Any]) -> list[str]:
    listed = [tool for field in _TOOLS for tool in body.get(field) or () if isinstance(tool, dict)]
    inner = [tool.get("function") if isinstance(tool.get("function"), dict) else tool for tool in listed]
    return sorted(str(tool.get("name") or tool.get("type")) for tool in inner if tool)


def _call_ids(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield from (str(found[name]) for name in _CALL_IDS if name in found)
            if found.get("type") in _CALLS and isinstance(found.get("id"), str):
                yield found["id"]
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found


def _tell(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names[:5]) or "none"
