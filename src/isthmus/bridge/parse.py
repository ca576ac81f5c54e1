"""The only place where input is checked: JSON in, a `Request` out, or a 400 that names the field.

What we rely on must have the right type; what we do not know is kept, and the planner decides about it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, compress, repeat
from operator import attrgetter, itemgetter, methodcaller
from typing import Any, Final, cast

import msgspec

from isthmus.bridge.limits import (
    DEFAULT_LIMITS,
    HEAVY_TEXT,
    RequestLimits,
    check_body,
    check_text,
    few_values,
    is_heavy,
    too_wide,
)
from isthmus.bridge.toolset import find_toolset
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.large import LARGE, STEP, TooWide, decode_large
from isthmus.protocol.responses import ITEM_SHAPES, TOOL_SHAPES, CreateResponse


class Request(msgspec.Struct, frozen=True):
    """A checked request. `body` is the client's own object, never changed; `items` is its input as items."""

    body: CreateResponse
    items: tuple[JsonObject, ...]
    values: int = 0
    """How many it holds, with those that it refers to: what planning it takes."""
    size: int = 0
    """Bytes of its text, where it came as one."""

    @property
    def heavy(self) -> bool:
        return is_heavy(self.size, self.values)


def parse_request(
    raw: bytes | bytearray | str | JsonObject, limits: RequestLimits = DEFAULT_LIMITS, few: int = 0
) -> Request:
    """Check a Responses request; `raw` may be bytes from the wire or an object already decoded. `few`: how many values
    it was made of, where these are `few_values`."""
    body = raw if isinstance(raw, dict) else decode_json(raw, limits)
    if not isinstance(body, dict):
        wanted = 'the request body must be a JSON object; send `{"model": …, "input": …}`'
        raise RequestRefused(wanted, code="invalid_type")
    size = 0 if body is raw else len(raw)
    toolset = find_toolset(body.get("tools"), as_text=size > 0) if size <= HEAVY_TEXT else None
    if toolset is not None:
        body = {**body, "tools": toolset}
    values = few or few_values(raw, limits) or check_body(body, limits)
    _check(body if toolset is None else {**body, "tools": None}, CreateResponse, "")
    checked = cast(CreateResponse, body)
    given = checked.get("input")
    if given is None and isinstance(body.get("messages"), list):
        chat = "this is a Chat Completions body: it has `messages` and no `input`"
        raise _missing(f"{chat}; send it to `/v1/chat/completions`, or send its messages as `input`", "input")
    if checked.get("previous_response_id") is not None and checked.get("conversation") is not None:
        both = "`previous_response_id` and `conversation` exclude each other; send one of them"
        raise RequestRefused(both, code="mutually_exclusive_parameters", param="previous_response_id")
    if toolset is None or not toolset.sound:
        _check_tools(checked.get("tools") or (), "tools")
        if toolset is not None:
            toolset.sound = True
    if isinstance(given, str):
        return Request(checked, ({"type": "message", "role": "user", "content": given},), values, size)
    return Request(checked, parse_items(given or (), "input"), values, size)


def conversation_of(body: CreateResponse) -> str | None:
    """The id of the conversation that a request is a turn of."""
    given = body.get("conversation")
    return given if given is None or isinstance(given, str) else given["id"]


def parse_items(given: Sequence[JsonObject], path: str) -> tuple[JsonObject, ...]:
    """Input items, each with its `type`; `path` is where they stand."""
    kinds = [*map(_type_of, given)]
    if all(map(isinstance, kinds, repeat(str))) and all(_are_fit(kind, given, kinds) for kind in {*kinds}):
        return tuple(given)
    # One has no type, or is not well-formed: one by one, which, and what of it.
    return tuple([_parse_item(item, f"{path}[{index}]") for index, item in enumerate(given)])


_type_of: Final = methodcaller("get", "type")
_type_in: Final = itemgetter("type")
_name_of: Final = attrgetter("name")
_text_of: Final = {"message": methodcaller("get", "content")}
_output_of: Final = methodcaller("get", "output")


def _are_fit(kind: str, given: Sequence[JsonObject], kinds: Sequence[str]) -> bool:
    """Whether all items of one kind are as they must be: looked at together, for the sake of long conversations."""
    if kind not in ITEM_SHAPES:
        return True
    items = [*compress(given, map(kind.__eq__, kinds))]
    try:
        msgspec.convert(items, _SHAPES[kind])
    except msgspec.ValidationError:
        return False
    told = [*map(_text_of.get(kind, _output_of), items)]
    parts = chain.from_iterable(compress(told, map(isinstance, told, repeat(list))))
    return kind not in _CARRIERS and all(map(_is_fit, parts))


def decode_json(raw: bytes | bytearray | str, limits: RequestLimits = DEFAULT_LIMITS) -> Any:
    """JSON text → values, with a 400 that says where it went wrong."""
    check_text(raw.encode("utf-8", "replace") if isinstance(raw, str) else raw, limits)
    widest = limits.max_wide_text
    try:
        if len(raw) > min(LARGE, widest) and not isinstance(raw, str):
            return decode_large(raw, min(STEP, widest), widest)
        return msgspec.json.decode(raw)
    except TooWide as error:
        raise too_wide(limits) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestRefused(f"the request body is not valid JSON: {error}", code="invalid_json") from error
    except RecursionError as error:
        raise RequestRefused("the request body is nested too deeply", code="invalid_json") from error


def _check_tools(tools: Sequence[JsonObject], path: str) -> None:
    if _are_sound(tools):
        return
    # One is not well-formed, or holds others: one by one.
    for index, tool in enumerate(tools):
        where, kind = f"{path}[{index}]", tool.get("type")
        if not isinstance(kind, str):
            raise _missing(f"`{where}` has no `type`; give each tool one, for example `function`", f"{where}.type")
        if (shape := TOOL_SHAPES.get(kind)) is None:
            continue
        if not tool.get("name"):
            raise _missing(f"`{where}` has no `name`; give each {kind} tool one", f"{where}.name")
        _check(tool, shape, where)
        if kind == "namespace":
            _check_tools(tool["tools"], f"{where}.tools")


def _are_sound(tools: Sequence[JsonObject]) -> bool:
    """Whether they are as they must be: those of a kind are looked at together, for the sake of long lists."""
    try:
        kinds = [*map(_type_in, tools)]
        for kind in (several := {*kinds}):
            alike = [*compress(tools, map(kind.__eq__, kinds))] if len(several) > 1 else tools
            if not isinstance(kind, str) or kind == "namespace":
                return False
            if kind in TOOL_SHAPES and not all(map(_name_of, msgspec.convert(alike, _TOOLS[kind]))):
                return False
    except (KeyError, TypeError, msgspec.ValidationError):
        return False
    return True


def _parse_item(item: JsonObject, path: str) -> JsonObject:
    """The item with its `type`: messages and references may leave it out."""
    kind = item.get("type")
    if kind is None:
        if "role" in item:
            kind = "message"
        elif {name for name, value in item.items() if value is not None} == {"id"}:
            kind = "item_reference"
        else:
            raise _missing(f"`{path}` has no `type`; give each input item one, for example `message`", f"{path}.type")
        item = {**item, "type": kind}
    elif not isinstance(kind, str):
        raise _no_string(f"{path}.type")
    if (shape := ITEM_SHAPES.get(kind)) is not None:
        _check(item, shape, path)
        if kind in _CARRIERS:
            _check_tools(item.get("tools") or (), f"{path}.tools")
        field = "content" if kind == "message" else "output"
        if isinstance(parts := item.get(field), list):
            _check_parts(parts, f"{path}.{field}")
    return item


_SHAPES: Final[Mapping[str, Any]] = {
    kind: list[shape]  # type: ignore[valid-type]  # a type like any other, made of a table
    for kind, shape in ITEM_SHAPES.items()
}
_TOOLS: Final[Mapping[str, Any]] = {
    kind: list[shape]  # type: ignore[valid-type]  # likewise
    for kind, shape in TOOL_SHAPES.items()
}
_CARRIERS: Final = ("additional_tools", "tool_search_output")
"""Items that bring tools along."""
_PART_TEXT: Final = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}


def _check_parts(parts: Sequence[Any], path: str) -> None:
    for index, part in enumerate(parts):
        kind = part.get("type") or ""
        if not isinstance(kind, str):
            raise _no_string(f"{path}[{index}].type")
        field = _PART_TEXT.get(kind)
        if field is not None and not isinstance(part.get(field), str):
            raise _no_string(f"{path}[{index}].{field}")


def _is_fit(part: Any) -> bool:
    kind = part.get("type") or ""
    if not isinstance(kind, str):
        return False
    field = _PART_TEXT.get(kind)
    return field is None or isinstance(part.get(field), str)


def _check(value: JsonObject, shape: Any, path: str) -> None:
    """`msgspec` checks the types; its message becomes ours, with the full path of the field."""
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), path) from error


_WHERE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING: Final = re.compile(r"missing required field `([^`]+)`")


def _refusal(message: str, path: str) -> RequestRefused:
    found = _WHERE.match(message)
    what, inner = (found["what"], found["path"] or "") if found else (message, "")
    if missing := _MISSING.search(what):
        param = f"{path}{inner}.{missing[1]}".lstrip(".")
        return _missing(f"`{param}` is missing", param)
    param = f"{path}{inner}".lstrip(".")
    text = what[0].lower() + what[1:] if what else "wrong type"
    return RequestRefused(f"`{param}`: {text}", code="invalid_type", param=param or None)


def _missing(message: str, param: str) -> RequestRefused:
    return RequestRefused(message, code="missing_required_parameter", param=param)


def _no_string(param: str) -> RequestRefused:
    return RequestRefused(f"`{param}` must be a string", code="invalid_type", param=param)
