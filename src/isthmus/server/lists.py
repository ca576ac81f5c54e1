"""Lists as every one of OpenAI's is asked for, and told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from isthmus.errors import RequestRefused
from isthmus.protocol.json import JsonObject


def asked_order(asked: Mapping[str, str], default: Literal["asc", "desc"]) -> Literal["asc", "desc"]:
    match asked.get("order", default):
        case "asc":
            return "asc"
        case "desc":
            return "desc"
    raise RequestRefused("`order` must be `asc` or `desc`", code="invalid_value", param="order")


def page_of(data: Sequence[Any], ids: Sequence[str], has_more: bool) -> JsonObject:
    """A page as every list of OpenAI's has it."""
    ends = (ids[0], ids[-1]) if ids else (None, None)
    return {"object": "list", "data": list(data), "first_id": ends[0], "last_id": ends[1], "has_more": has_more}
