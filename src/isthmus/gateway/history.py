"""Stored turns, or a conversation → the items that a new turn builds on.

Order: prior input, prior output, new input. Earlier `instructions` are not replayed: they belong to
their own turn. What is still being made cannot be continued; what ended early can. All that a request leads to counts
against the same limits as what it brings, before any of it is decoded: one item may be named five hundred times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.bridge.history.compact import cut_history
from isthmus.bridge.limits import RequestLimits, check_input, check_stored, is_heavy
from isthmus.bridge.parse import Request, conversation_of
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.chats import is_chat
from isthmus.gateway.led import leads_to
from isthmus.gateway.local import Connected
from isthmus.ports import UNFINISHED, Store, StoredTurn
from isthmus.protocol.json import JsonObject
from isthmus.protocol.large import LARGE, decode_large

_decode: Final = msgspec.json.Decoder().decode
_type_of: Final = itemgetter("type")
_REFERENCE: Final = "item_reference"


class Past(NamedTuple):
    history: list[JsonObject]
    """The items of all turns before this one, oldest first."""
    request: Request
    """With the items that its references name in their place."""
    at: int = 0
    """Where the conversation stands that it is a turn of."""


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
    named = await load_named(store, request.items, owner, "input", limits)
    turns, at = await _load_turns(store, request, owner, max_chain, limits.max_items, local)
    if not named and not turns:
        return Past([], request, at)
    references = [named[item["id"]] for item in request.items if item["type"] == _REFERENCE]
    stored = [raw for raw, _ in turns]
    values = check_input([*stored, *references], len(request.items) - len(references), limits)
    size = sum(map(len, stored)) + sum(map(len, references))
    leads_to(size)

    def decode() -> Past:
        items = [_item(named[item["id"]]) if item["type"] == _REFERENCE else item for item in request.items]
        counted = {"values": request.values + values, "size": request.size + size}
        made = msgspec.structs.replace(request, items=tuple(items), **counted)
        return Past(cut_history([_item(raw) for raw in stored], [ours for _, ours in turns]), made, at)

    return await aside.do(decode, heavy=is_heavy(size, values))


async def _load_turns(
    store: Store, request: Request, owner: str, max_chain: int, most: int, local: Connected | None
) -> tuple[Sequence[tuple[bytes, bool]], int]:
    """The items of the chain or the conversation, each with whether it was ours to say; and where that stands."""
    if (conversation := conversation_of(request.body)) is not None:
        found = await store.conversation_turns(conversation, owner=owner, most=most)
        if found is None:
            raise no_conversation(conversation)
        return found.items, found.at
    parent = request.body.get("previous_response_id")
    if parent is None:
        return [], 0
    if local is not None and (known := local.find(parent)) is not None:
        return known, 0
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
    said = [(raw, ours) for turn in turns for some, ours in ((turn.input, False), (turn.output, True)) for raw in some]
    return [*await _before(store, turns, parent, owner, most), *said], 0


async def _before(
    store: Store, turns: Sequence[StoredTurn], parent: str, owner: str, most: int
) -> Sequence[tuple[bytes, bool]]:
    """What a chain began with: the conversation that its first turn was made in, as it was then."""
    first = turns[0] if turns else None
    if first is None or first.conversation is None:
        return []
    found = await store.conversation_turns(first.conversation, owner=owner, most=most, before=first.conversation_at)
    if found is None:
        raise RequestRefused(
            f"previous response `{parent}` cannot be continued: conversation `{first.conversation}`, in which "
            f"`{first.id}` was made, was deleted; send the whole history in `input` instead",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    return found.items


async def load_named(
    store: Store, items: Sequence[JsonObject], owner: str, where: str, limits: RequestLimits
) -> Mapping[str, bytes]:
    """What each `item_reference` among these names; they stand in the field `where`."""
    if _REFERENCE not in map(_type_of, items):
        return {}
    wanted = [(index, item["id"]) for index, item in enumerate(items) if item["type"] == _REFERENCE]
    found = await store.items([*dict.fromkeys(id for _, id in wanted)], owner=owner, max_bytes=limits.max_input)
    check_stored(sum(map(len, found.values())), limits)  # before what is missing: more than that was not read
    for index, id in wanted:
        if id not in found:
            raise RequestRefused(
                f"`{where}[{index}]` refers to item `{id}`, which is not stored here; send the item itself",
                code="item_not_found",
                param=f"{where}[{index}].id",
            )
    return found


def no_conversation(id: str) -> RequestRefused:
    words = f"no conversation `{id}` is kept here; begin one with `POST /v1/conversations`"
    return RequestRefused(words, code="conversation_not_found", param="conversation")


def _item(raw: bytes) -> JsonObject:
    item: Any = decode_large(raw) if len(raw) > LARGE else _decode(raw)
    return item if "type" in item else {"type": "message", **item}
