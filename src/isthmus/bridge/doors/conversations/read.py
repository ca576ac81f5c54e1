"""Bodies of `/v1/conversations` → what is asked for, or a 400 that names the field.

Items are the input items of a response, checked in the same way. The limits are OpenAI's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from isthmus.bridge.history.compact import TRIGGER
from isthmus.bridge.limits import RequestLimits, check_body
from isthmus.bridge.metadata import check_metadata
from isthmus.bridge.parse import decode_json, parse_items
from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject

MAX_ITEMS: Final = 20
"""In one request."""
MAX_ID: Final = 512
INCLUDES: Final = (
    "web_search_call.action.sources",
    "web_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
)
"""What a list of items may be asked to show; here it shows everything that is kept."""


class Asked(msgspec.Struct, frozen=True):
    items: tuple[JsonObject, ...] = ()
    metadata: Mapping[str, str] = {}


def read_new(raw: bytes | bytearray, limits: RequestLimits) -> Asked:
    """A conversation to be made; a body without anything in it will do."""
    body = _read(raw, limits, "items", "metadata")
    return Asked(_items(body.get("items") or []), check_metadata(body.get("metadata")))


def read_change(raw: bytes | bytearray, limits: RequestLimits) -> Asked:
    body = _read(raw, limits, "metadata")
    return Asked(metadata=check_metadata(_required(body, "metadata")))


def read_items(raw: bytes | bytearray, limits: RequestLimits) -> Asked:
    body = _read(raw, limits, "items")
    return Asked(_items(_required(body, "items")))


def check_includes(given: list[str]) -> None:
    for name in given:
        if name not in INCLUDES:
            known = ", ".join(f"`{each}`" for each in INCLUDES)
            raise _invalid(f"`include[]` is `{name}`; send some of {known}", "include")


def _read(raw: bytes | bytearray, limits: RequestLimits, *known: str) -> JsonObject:
    body: Any = decode_json(raw, limits) if raw.strip() else {}
    if not isinstance(body, dict):
        raise RequestRefused("the request body must be a JSON object", code="invalid_type")
    check_body(body, limits)
    for name in body:
        if name not in known:
            fields = " and ".join(f"`{each}`" for each in known)
            raise RequestRefused(f"`{name}` is not known here; send {fields}", code="unknown_parameter", param=name)
    return body


def _required(body: JsonObject, name: str) -> Any:
    if name not in body:
        raise RequestRefused(f"`{name}` is missing", code="missing_required_parameter", param=name)
    return body[name]


def _items(given: Any) -> tuple[JsonObject, ...]:
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise RequestRefused("`items` must be a list of items", code="invalid_type", param="items")
    if len(given) > MAX_ITEMS:
        raise _invalid(f"`items` has {len(given)} items; send {MAX_ITEMS} at most, and the rest after them", "items")
    items = parse_items(given, "items")
    for index, item in enumerate(items):
        if item["type"] == TRIGGER:
            words = f"`items[{index}]`: a `{TRIGGER}` asks for something now; send it as `input` of a response"
            raise _invalid(words, f"items[{index}]")
        id = item.get("id")
        if id is not None and not (isinstance(id, str) and len(id) <= MAX_ID):
            raise _invalid(f"`items[{index}].id` must be a text of {MAX_ID} characters at most", f"items[{index}].id")
    return items


def _invalid(words: str, param: str) -> RequestRefused:
    return RequestRefused(words, code="invalid_value", param=param)
