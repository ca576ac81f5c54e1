"""Stored turns → the items that a new turn builds on.

Order: prior input, prior output, new input. Earlier `instructions` are not replayed: they belong to
their own turn. What is still being made cannot be continued; what ended early can.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isthmus.bridge.parse import Request
from isthmus.errors import RequestRefused
from isthmus.ports import UNFINISHED, Store
from isthmus.protocol.json import JsonObject

_decode: Final = msgspec.json.Decoder().decode


async def load_history(store: Store, request: Request, *, owner: str, max_chain: int) -> list[JsonObject]:
    """The items of all turns before this one, oldest first."""
    parent = request.body.get("previous_response_id")
    if parent is None:
        return []
    turns = await store.chain(parent, owner=owner, max_depth=max_chain)
    if turns and turns[-1].status in UNFINISHED:
        raise RequestRefused(
            f"response `{parent}` is still {turns[-1].status}; wait until it has ended, or cancel it",
            code="previous_response_not_finished",
            param="previous_response_id",
        )
    return [_item(raw) for turn in turns for raw in (*turn.input, *turn.output)]


async def resolve_references(store: Store, request: Request, *, owner: str) -> Request:
    """Replace each `item_reference` by the item it names."""
    wanted = [item["id"] for item in request.items if item["type"] == "item_reference"]
    if not wanted:
        return request
    found = await store.items(wanted, owner=owner)
    items: list[JsonObject] = []
    for index, item in enumerate(request.items):
        if item["type"] != "item_reference":
            items.append(item)
        elif item["id"] in found:
            items.append(_item(found[item["id"]]))
        else:
            raise RequestRefused(
                f"`input[{index}]` refers to item `{item['id']}`, which is not stored here; send the item itself",
                code="item_not_found",
                param=f"input[{index}].id",
            )
    return msgspec.structs.replace(request, items=tuple(items))


def _item(raw: bytes) -> JsonObject:
    item: Any = _decode(raw)
    return item if "type" in item else {"type": "message", **item}
