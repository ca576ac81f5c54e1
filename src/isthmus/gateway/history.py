"""Stored turns → the items that a new turn builds on.

Order: prior input, prior output, new input. Earlier `instructions` are not replayed: they belong to
their own turn. What is still being made cannot be continued; what ended early can. All that a request leads to counts
against the same limits as what it brings, before any of it is decoded: one item may be named five hundred times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.bridge.history.compact import cut_history
from isthmus.bridge.limits import RequestLimits, check_input, check_stored, is_heavy
from isthmus.bridge.parse import Request
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.chats import is_chat
from isthmus.gateway.led import leads_to
from isthmus.gateway.local import Connected
from isthmus.ports import UNFINISHED, Store
from isthmus.protocol.json import JsonObject
from isthmus.protocol.large import LARGE, decode_large

_decode: Final = msgspec.json.Decoder().decode
_REFERENCE: Final = "item_reference"


class Past(NamedTuple):
    history: list[JsonObject]
    """The items of all turns before this one, oldest first."""
    request: Request
    """With the items that its references name in their place."""


async def load_past(
    store: Store,
    request: Request,
    *,
    owner: str,
    max_chain: int,
    limits: RequestLimits,
    aside: Aside,
    local: Connected | None = None,
) -> Past:
    """`local`: turns that the client's connection knows, and no store."""
    named = await _load_named(store, request, owner, limits)
    turns = await _load_turns(store, request, owner, max_chain, local)
    if not named and not turns:
        return Past([], request)
    references = [named[item["id"]] for item in request.items if item["type"] == _REFERENCE]
    stored = [raw for raw, _ in turns]
    values = check_input([*stored, *references], len(request.items) - len(references), limits)
    size = sum(map(len, stored)) + sum(map(len, references))
    leads_to(size)

    def decode() -> Past:
        items = [_item(named[item["id"]]) if item["type"] == _REFERENCE else item for item in request.items]
        counted = {"values": request.values + values, "size": request.size + size}
        made = msgspec.structs.replace(request, items=tuple(items), **counted)
        return Past(cut_history([_item(raw) for raw in stored], [ours for _, ours in turns]), made)

    return await aside.do(decode, heavy=is_heavy(size, values))


async def _load_turns(
    store: Store, request: Request, owner: str, max_chain: int, local: Connected | None
) -> Sequence[tuple[bytes, bool]]:
    """The items of the chain, each with whether it was ours to say."""
    parent = request.body.get("previous_response_id")
    if parent is None:
        return []
    if local is not None and (known := local.find(parent)) is not None:
        return known
    if is_chat(parent):
        raise RequestRefused(
            f"`{parent}` is a chat completion, which cannot be continued; send its messages in `input` instead",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    turns = await store.chain(parent, owner=owner, max_depth=max_chain)
    if turns and turns[-1].status in UNFINISHED:
        raise RequestRefused(
            f"response `{parent}` is still {turns[-1].status}; wait until it has ended, or cancel it",
            code="previous_response_not_finished",
            param="previous_response_id",
        )
    return [(raw, ours) for turn in turns for said, ours in ((turn.input, False), (turn.output, True)) for raw in said]


async def _load_named(store: Store, request: Request, owner: str, limits: RequestLimits) -> Mapping[str, bytes]:
    """What each `item_reference` names."""
    wanted = [(index, item["id"]) for index, item in enumerate(request.items) if item["type"] == _REFERENCE]
    if not wanted:
        return {}
    found = await store.items([*dict.fromkeys(id for _, id in wanted)], owner=owner, max_bytes=limits.max_input)
    check_stored(sum(map(len, found.values())), limits)  # before what is missing: more than that was not read
    for index, id in wanted:
        if id not in found:
            raise RequestRefused(
                f"`input[{index}]` refers to item `{id}`, which is not stored here; send the item itself",
                code="item_not_found",
                param=f"input[{index}].id",
            )
    return found


def _item(raw: bytes) -> JsonObject:
    item: Any = decode_large(raw) if len(raw) > LARGE else _decode(raw)
    return item if "type" in item else {"type": "message", **item}
