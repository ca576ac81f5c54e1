"""A conversation as rows: one that says where it stands, and one for each item. Both have digests, as everything has
that is read back: what every store that has tables does alike."""

from __future__ import annotations

from typing import Final, NamedTuple

from isthmus.ports import StoredConversation
from isthmus.store.packing import digest_conversation, digest_place, read_piece
from isthmus.store.refusals import damaged_conversation

COLUMNS: Final = "key, id, owner, created_at, used_at, next, items, metadata, digest"
"""What `Row` is made of, in this order."""
_ROW_DAMAGED: Final = "its row is not as it was written"


class Row(NamedTuple):
    key: int
    id: str
    owner: str
    created_at: float
    used_at: float
    next: int
    """The position of the next item: it grows with every change, so that it says where the conversation stands."""
    items: int
    """How many there are."""
    metadata: bytes
    digest: bytes = b""

    @property
    def seal(self) -> bytes:
        return digest_conversation(*self[1:8])

    @property
    def record(self) -> StoredConversation:
        return StoredConversation(self.id, self.created_at, bytes(self.metadata), self.owner)

    def damage(self) -> str | None:
        try:
            return None if self.digest == self.seal else _ROW_DAMAGED
        except TypeError:  # SQLite stores any kind of value in any column
            return _ROW_DAMAGED


class Item(NamedTuple):
    position: int
    item_id: str
    ours: int
    digest: bytes
    hash: bytes | None
    data: bytes | None

    def read(self, row: Row) -> bytes | None:
        """What it says; `None` if that is not what was written."""
        if self.hash is None or self.data is None:
            return None
        try:
            placed = digest_place(row.id, self.position, self.item_id, self.ours, self.hash) == self.digest
        except TypeError:
            return None
        return read_piece(row.owner, False, self.hash, self.data) if placed else None

    def whole(self, row: Row) -> bytes:
        """The same; refused if it is not."""
        content = self.read(row)
        if content is None:
            raise damaged_conversation(row.id, f"its item `{self.item_id}` is not as it was written")
        return content
