"""Items by name: what an item without an id is called, and how a long list is cut into pages.

Clients send most input items without an id, yet a page needs one to continue after. Such an item is called by its
response and position: the name is made on reading, never stored, so that equal items stay equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

import msgspec

from isthmus.errors import RequestRefused
from isthmus.ports import ItemPage
from isthmus.store.pieces import INPUT, OUTPUT

_PREFIX: Final = {INPUT: "in", OUTPUT: "out"}
_MADE: Final = re.compile(r"(in|out)([0-9]{1,9})_(.+)", re.DOTALL)
_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw])

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an item stands: its response, INPUT or OUTPUT, and its position there."""

    response_id: str
    place: int
    position: int


def name_item(place: Place, own_id: str | None) -> str:
    return own_id or f"{_PREFIX[place.place]}{place.position}_{place.response_id}"


def find_place(name: str) -> Place | None:
    """The place that a made name tells; `None` if it is not one."""
    if (match := _MADE.fullmatch(name)) is None:
        return None
    word, position, response_id = match.groups()
    return Place(response_id, INPUT if word == "in" else OUTPUT, int(position))


def cut_page(
    entries: Sequence[tuple[str, T]], limit: int, after: str | None, order: Literal["asc", "desc"]
) -> tuple[list[tuple[str, T]], bool]:
    """The asked slice of (name, where) pairs, oldest first, and whether more follow. A name counts once."""
    unique: dict[str, T] = {}
    for name, where in entries:
        unique.setdefault(name, where)
    ordered = list(unique.items())
    if order == "desc":
        ordered.reverse()
    start = 0
    if after is not None:
        if after not in unique:
            raise RequestRefused(
                f"`after` names no input item of this response: `{after}`; use an id from the list", param="after"
            )
        start = next(index for index, (name, _) in enumerate(ordered) if name == after) + 1
    return ordered[start : start + limit], len(ordered) > start + limit


def make_page(named: Sequence[tuple[str, bytes]], has_more: bool) -> ItemPage:
    items = tuple(with_id(data, name) for name, data in named)
    return ItemPage(items, named[0][0] if named else None, named[-1][0] if named else None, has_more)


def with_id(data: bytes, name: str) -> bytes:
    """The item under this id."""
    fields = _fields_of.decode(data)
    encoded = msgspec.json.encode(name)
    if "id" in fields and bytes(fields["id"]) == encoded:
        return data
    return msgspec.json.encode({"id": msgspec.Raw(encoded)} | fields | {"id": msgspec.Raw(encoded)})
