"""What a turn says to its conversation, item by item, and what each is called there.

An item of a conversation always has an id, and keeps the one that it brought. Clients send most input without one: such
an item is called by its kind, its response and its position, as our own output is. So is one whose id the conversation
knows already: it was said again, and is not the same item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from isthmus.ports import StoredConversation
from isthmus.protocol.items import ID_PREFIXES
from isthmus.store.pieces import INPUT

MOMENTARY: Final = frozenset({"compaction_trigger"})
"""Kinds that ask for something now, and would ask for it again with every turn that follows."""


class _Kind(msgspec.Struct):
    type: str = "message"


_kind_of: Final = msgspec.json.Decoder(_Kind)


def kind_of(item: bytes) -> str:
    return _kind_of.decode(item).type


def name_said(item: bytes, response_id: str, place: int, position: int, taken: Callable[[str], bool]) -> str:
    """The id of an item that brought none, or one that is `taken`."""
    side = "i" if place == INPUT else "o"
    name = f"{ID_PREFIXES.get(kind_of(item), 'item')}_{response_id.removeprefix('resp_')}_{side}{position}"
    while taken(name):
        name += "_"
    return name


def export_conversation(record: StoredConversation, items: list[bytes]) -> bytes:
    """One line of an export."""
    columns = {
        "conversation": record.id,
        "owner": record.owner,
        "created_at": record.created_at,
        "metadata": msgspec.Raw(record.metadata),
        "items": [msgspec.Raw(item) for item in items],
    }
    # A line break can only be white space between tokens here: inside a JSON string it is always escaped.
    return msgspec.json.encode(columns).replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"
