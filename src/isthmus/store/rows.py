"""A response as columns and pieces, and back: what every store that has tables does alike.

On the way in, rows get their digests; on the way out nothing is handed on that is not what was written. What is not so
is told in words, by whoever asked.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec

from isthmus.ports import StoredResponse, StoredTurn
from isthmus.store.listing import Place, name_item
from isthmus.store.packing import (
    digest_events,
    digest_row,
    digest_turn,
    hash_piece,
    pack,
    read_piece,
    unpack,
    unpack_list,
)
from isthmus.store.pieces import FIELD, INPUT, OUTPUT, Piece, join, own_id, split
from isthmus.store.refusals import damaged, not_found, too_long

Selected = tuple[list[StoredResponse], dict[str, str]]
"""Responses, and ids of damaged ones with what is wrong with them."""
Hashed = tuple[bytes, Piece]

COLUMNS: Final = (
    "key, id, owner, previous_id, created_at, status, model, provider, conversation, skeleton, memo,"
    " turn_digest, row_digest, conversation_at"
)
"""What `whole` reads, in this order."""
_ROW_DAMAGED: Final = "its row is not as it was written"
_PLACES: Final = {INPUT: "input item", OUTPUT: "output item", FIELD: "field"}


class Ancestor(NamedTuple):
    """One row of a chain."""

    key: int
    id: str
    previous_id: str | None
    status: str
    model: str
    provider: str
    deleted: int
    digest: bytes | None
    conversation: str | None
    conversation_at: int


class ListedPiece(NamedTuple):
    """Where a piece of a chain stands, without what it says."""

    response: int
    place: int
    position: int
    piece: int
    item_id: str | None
    hash: bytes


@dataclass(slots=True)
class Contents:
    """The pieces of a row, in order."""

    pieces: list[tuple[int, int, bytes, bytes]] = field(default_factory=list)
    """Place, position, hash and content."""
    damage: str | None = None

    def data(self, place: int) -> tuple[bytes, ...]:
        return tuple([data for at, _, _, data in self.pieces if at == place])

    def take(self, owner: str, place: int, position: int, hash: bytes, data: bytes) -> None:
        """One piece as it is stored."""
        content = read_piece(owner, place == FIELD, hash, data)
        if content is None:
            self.damage = f"its {_PLACES.get(place, 'part')} {position} is not as it was written"
        self.pieces.append((place, position, hash, content or b""))

    def close(self) -> None:
        """Nothing more comes."""
        if self.damage is None:
            self.pieces.sort(key=lambda piece: piece[:2])


def take_apart(record: StoredResponse) -> tuple[tuple[object, ...], list[Hashed]]:
    """Status, model, provider, conversation and where it stood, time, skeleton, memo and both digests; and the pieces,
    each with its hash."""
    skeleton, pieces = split(record)
    owner = record.owner
    hashed = [(hash_piece(owner, piece.place == FIELD, piece.data), piece) for piece in pieces]
    named = (record.id, owner, record.previous_response_id)
    told = (record.status, record.model, record.provider)
    content = (pack(skeleton), record.memo)
    items = [(piece.place, piece.position, digest) for digest, piece in hashed if piece.place != FIELD]
    fields = [(piece.position, digest) for digest, piece in hashed if piece.place == FIELD]
    within = (record.conversation, record.conversation_at)
    turn = digest_turn((*named, *told, *(within if record.conversation else ())), items)
    row = digest_row(turn, record.created_at, record.conversation, content, fields)
    return (*told, *within, record.created_at, *content, turn, row), hashed


def whole(row: tuple[Any, ...], contents: Contents) -> StoredResponse | str:
    """The response of a row of `COLUMNS`, or what is wrong with it."""
    key, id, owner, previous_id, created_at, status, model, provider, conversation, skeleton, memo, *rest = row
    turn, digest, at = rest
    told = Ancestor(key, id, previous_id, status, model, provider, 0, turn, conversation, at)
    what = damage_of_turn(told, owner, contents)
    if what is not None:
        return what
    hashes = [(position, hash) for place, position, hash, _ in contents.pieces if place == FIELD]
    try:
        if digest is not None and digest_row(turn, created_at, conversation, (skeleton, memo), hashes) != digest:
            return _ROW_DAMAGED
        fields = [(position, data) for place, position, _, data in contents.pieces if place == FIELD]
        response = join(unpack(skeleton), contents.data(OUTPUT), fields)
        if digest is None:
            msgspec.json.decode(response)  # from before there were digests: at least it must be what it should be
    except (zlib.error, ValueError, IndexError, TypeError):  # SQLite stores any kind of value in any column
        return _ROW_DAMAGED
    return StoredResponse(
        id=id,
        response=response,
        input=contents.data(INPUT),
        previous_response_id=previous_id,
        created_at=created_at,
        status=status,
        model=model,
        provider=provider,
        owner=owner,
        conversation=conversation,
        conversation_at=at,
        memo=memo,
    )


def check_chain(rows: Sequence[Ancestor], id: str, max_depth: int) -> None:
    """`rows` begin with `id`, then its parent, and so on; one more than `max_depth` of them are too many."""
    for row in rows:
        if row.deleted:
            raise not_found(row.id, id)
    if len(rows) > max_depth:
        raise too_long(id, max_depth)
    missing = rows[-1].previous_id if rows else id
    if missing is not None:
        raise not_found(missing, id)


def make_turns(rows: Sequence[Ancestor], items: Mapping[int, Contents], owner: str, id: str) -> list[StoredTurn]:
    """The turns of a chain, the oldest first."""
    for row in rows:
        if (what := damage_of_turn(row, owner, items[row.key])) is not None:
            raise damaged(row.id, what, asked=id)
    return [_make_turn(row, items[row.key]) for row in reversed(rows)]


def _make_turn(row: Ancestor, items: Contents) -> StoredTurn:
    said, told = items.data(INPUT), items.data(OUTPUT)
    return StoredTurn(row.id, row.status, row.model, row.provider, said, told, row.conversation, row.conversation_at)


def list_history(rows: Sequence[Ancestor], places: list[ListedPiece], owner: str, id: str) -> list[tuple[str, int]]:
    """What led to `id`, each item by its name and its piece: earlier turns, input and output, then its own input."""
    ids = {row.key: row.id for row in reversed(rows)}
    listed = {key: Contents() for key in ids}
    for each in places:
        if each.response in listed:
            listed[each.response].pieces.append((each.place, each.position, each.hash, b""))
    for row in rows:
        if (what := damage_of_turn(row, owner, listed[row.key])) is not None:
            raise damaged(row.id, what, asked=id)
    turn_order = {key: index for index, key in enumerate(ids)}
    places.sort(key=lambda each: (turn_order.get(each.response, 0), each.place, each.position))
    return [
        (name_item(Place(ids[each.response], each.place, each.position), each.item_id), each.piece)
        for each in places
        if each.response in ids and (each.place == INPUT or (each.place == OUTPUT and ids[each.response] != id))
    ]


def damage_of_turn(row: Ancestor, owner: str, contents: Contents) -> str | None:
    if contents.damage is not None or row.digest is None:
        return contents.damage
    items = [piece[:3] for piece in contents.pieces if piece[0] != FIELD]
    try:
        within = () if row.conversation is None else (row.conversation, row.conversation_at)
        named = (row.id, owner, row.previous_id, row.status, row.model, row.provider)
        sound = digest_turn((*named, *within), items) == row.digest
    except TypeError:  # values that cannot even be put in order
        sound = False
    return None if sound else "it is not the turn that was written"


def damage_of_events(first: int, last: int, data: bytes, digest: bytes | None) -> str | None:
    try:
        whole = digest == digest_events(first, last, data) if digest else len(unpack_list(data)) == last - first + 1
    except (zlib.error, ValueError, TypeError):
        whole = False
    return None if whole else f"its events {first} to {last} are not as they were written"


def read_item(
    owner: str, name: str, item_id: str | None, hash: bytes, data: bytes, *, stored: Callable[[str], str] = str
) -> bytes:
    """What an item says that `name` was asked for; `stored`: how its id is kept."""
    content = read_piece(owner, False, hash, data)
    own = None if content is None else own_id(content)
    if content is None or (own if own is None else stored(own)) != item_id:
        raise damaged(name, "the item is not as it was written")
    return content
