"""The only place where input is checked: JSON in, a `Request` out, or a 400 that names the field.

What we rely on must have the right type; what we do not know is kept, and the planner decides about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject
from isthmus.protocol.responses import ITEM_SHAPES, TOOL_SHAPES, CreateResponse

MAX_DEPTH: Final = 100
"""Deeper JSON than this is refused: later stages recurse into schemas and content."""


@dataclass(frozen=True, slots=True)
class Request:
    """A checked request. `body` is the client's own object, never changed; `items` is its input as items."""

    body: CreateResponse
    items: tuple[JsonObject, ...]

    @property
    def sent(self) -> tuple[str, ...]:
        """The fields that the client really sent: a `null` says no more than an absent field."""
        return tuple(name for name, value in self.body.items() if value is not None)


def parse_request(raw: bytes | str | JsonObject) -> Request:
    """Check a Responses request; `raw` may be bytes from the wire or an object already decoded."""
    body = raw if isinstance(raw, dict) else decode_json(raw)
    if not isinstance(body, dict):
        raise RequestRefused(
            'the request body must be a JSON object; send `{"model": …, "input": …}`', code="invalid_type"
        )
    _check(body, CreateResponse, "")
    _check_depth(body)
    checked = cast(CreateResponse, body)
    if checked.get("input") is None and isinstance(body.get("messages"), list):
        raise RequestRefused(
            "this is a Chat Completions body: it has `messages` and no `input`; "
            "send it to `/v1/chat/completions`, or send its messages as `input`",
            code="missing_required_parameter",
            param="input",
        )
    if checked.get("previous_response_id") is not None and checked.get("conversation") is not None:
        raise RequestRefused(
            "`previous_response_id` and `conversation` exclude each other; send one of them",
            code="mutually_exclusive_parameters",
            param="previous_response_id",
        )
    check_tools(checked.get("tools") or (), "tools")
    return Request(body=checked, items=parse_items(checked.get("input"), "input"))


def decode_json(raw: bytes | str) -> Any:
    """JSON text → values, with a 400 that says where it went wrong."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestRefused(f"the request body is not valid JSON: {error}", code="invalid_json") from error
    except RecursionError as error:
        raise RequestRefused("the request body is nested too deeply", code="invalid_json") from error


def parse_items(given: str | Sequence[JsonObject] | None, path: str) -> tuple[JsonObject, ...]:
    """Input in any accepted form → items that all carry their `type`."""
    if given is None:
        return ()
    if isinstance(given, str):
        return ({"type": "message", "role": "user", "content": given},)
    return tuple(_parse_item(item, f"{path}[{index}]") for index, item in enumerate(given))


def check_tools(tools: Sequence[JsonObject], path: str) -> None:
    """Each tool is an object with a `type` and the fields of its type that we rely on."""
    for index, tool in enumerate(tools):
        where = f"{path}[{index}]"
        kind = tool.get("type")
        if not isinstance(kind, str):
            raise RequestRefused(
                f"`{where}` has no `type`; give each tool one, for example `function`",
                code="missing_required_parameter",
                param=f"{where}.type",
            )
        shape = TOOL_SHAPES.get(kind)
        if shape is None:
            continue
        if not tool.get("name"):
            raise RequestRefused(
                f"`{where}` has no `name`; give each {kind} tool one",
                code="missing_required_parameter",
                param=f"{where}.name",
            )
        _check(tool, shape, where)
        if kind == "namespace":
            check_tools(tool["tools"], f"{where}.tools")


def _parse_item(item: JsonObject, path: str) -> JsonObject:
    kind = item.get("type")
    if kind is None:
        kind = _infer_type(item, path)
        item = {**item, "type": kind}
    elif not isinstance(kind, str):
        raise RequestRefused(f"`{path}.type` must be a string", code="invalid_type", param=f"{path}.type")
    shape = ITEM_SHAPES.get(kind)
    if shape is not None:
        _check(item, shape, path)
        if kind in ("additional_tools", "tool_search_output"):
            check_tools(item.get("tools") or (), f"{path}.tools")
        parts = item.get("content") if kind == "message" else item.get("output")
        if isinstance(parts, list):
            _check_parts(parts, f"{path}.{'content' if kind == 'message' else 'output'}")
    return item


def _infer_type(item: JsonObject, path: str) -> str:
    """Messages and references may leave `type` out."""
    if "role" in item:
        return "message"
    if {name for name, value in item.items() if value is not None} == {"id"}:
        return "item_reference"
    raise RequestRefused(
        f"`{path}` has no `type`; give each input item one, for example `message`",
        code="missing_required_parameter",
        param=f"{path}.type",
    )


_PART_TEXT: Final = {"input_text": "text", "output_text": "text", "refusal": "refusal", "text": "text"}


def _check_parts(parts: Sequence[Any], path: str) -> None:
    for index, part in enumerate(parts):
        kind = part.get("type") or ""
        if not isinstance(kind, str):
            raise RequestRefused(
                f"`{path}[{index}].type` must be a string", code="invalid_type", param=f"{path}[{index}].type"
            )
        field = _PART_TEXT.get(kind)
        if field is not None and not isinstance(part.get(field), str):
            raise RequestRefused(
                f"`{path}[{index}].{field}` must be a string",
                code="invalid_type",
                param=f"{path}[{index}].{field}",
            )


_WHERE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<key>key in )?\$(?P<path>[^`]*)`)?$", re.DOTALL)
_MISSING: Final = re.compile(r"missing required field `([^`]+)`")


def _check(value: JsonObject, shape: Any, path: str) -> None:
    """`msgspec` checks the types; its message becomes ours, with the full path of the field."""
    try:
        msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise _refusal(str(error), path) from error


def _refusal(message: str, path: str) -> RequestRefused:
    found = _WHERE.match(message)
    what, inner = (found["what"], found["path"] or "") if found else (message, "")
    missing = _MISSING.search(what)
    if missing:
        inner = f"{inner}.{missing[1]}"
    param = f"{path}{inner}".lstrip(".")
    if missing:
        return RequestRefused(f"`{param}` is missing", code="missing_required_parameter", param=param)
    text = what[0].lower() + what[1:] if what else "wrong type"
    return RequestRefused(f"`{param}`: {text}", code="invalid_type", param=param or None)


def _check_depth(value: Any) -> None:
    """Refuse absurd nesting, without recursion."""
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise RequestRefused(f"the request body is nested more than {MAX_DEPTH} levels deep", code="invalid_json")
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(child for child in node.values() if isinstance(child, dict | list))
            else:
                below.extend(child for child in node if isinstance(child, dict | list))
        level = below
