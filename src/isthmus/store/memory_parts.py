"""What the memory store is made of: pieces shared by counting, streams that drop their oldest events, and responses
that hold both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from isthmus.ports import UNFINISHED, EventBatch, StoredResponse
from isthmus.store.pieces import FIELD, INPUT, OUTPUT, Piece, join

_BYTES_PER_PART: Final = 80
"""What it costs to hold a piece, beside the piece."""


@dataclass(slots=True)
class Shared:
    """One piece of content, however many responses hold it."""

    owner: str
    is_field: bool
    data: bytes
    item_id: str | None
    holders: int = 0


@dataclass(slots=True)
class Pool:
    size: int = 0
    _by_content: dict[tuple[str, bool, bytes], Shared] = field(default_factory=dict)
    _by_item: dict[tuple[str, str], list[Shared]] = field(default_factory=dict)
    """Different contents under one item id, the first stored first."""

    def take(self, owner: str, piece: Piece) -> Shared:
        is_field = piece.place == FIELD
        shared = self._by_content.get((owner, is_field, piece.data))
        if shared is None:
            shared = Shared(owner, is_field, piece.data, piece.item_id)
            self._by_content[owner, is_field, piece.data] = shared
            self.size += len(piece.data)
            if shared.item_id is not None:
                self._by_item.setdefault((owner, shared.item_id), []).append(shared)
        shared.holders += 1
        return shared

    def release(self, shared: Shared) -> None:
        shared.holders -= 1
        if shared.holders:
            return
        del self._by_content[shared.owner, shared.is_field, shared.data]
        self.size -= len(shared.data)
        if shared.item_id is not None:
            named = self._by_item[shared.owner, shared.item_id]
            named.remove(shared)
            if not named:
                del self._by_item[shared.owner, shared.item_id]

    def find(self, owner: str, item_id: str) -> Shared | None:
        named = self._by_item.get((owner, item_id))
        return named[0] if named else None

    def __len__(self) -> int:
        return len(self._by_content)


@dataclass(slots=True)
class Stream:
    batches: list[EventBatch] = field(default_factory=list)
    size: int = 0
    dropped: int = -1
    """The last sequence number that is no longer kept."""

    def check(self, batch: EventBatch) -> None:
        """`ValueError` if the batch does not follow the last one."""
        if self.batches:
            last = self.batches[-1]
            expected = last.first + len(last.events)
            if batch.first != expected:
                raise ValueError(f"event {batch.first} does not follow: expected {expected}")

    def append(self, batch: EventBatch, max_bytes: int) -> int:
        """Add the batch, drop the oldest beyond `max_bytes` (never the newest); says how the size changed."""
        self.check(batch)
        before = self.size
        if batch.events:
            self.batches.append(batch)
            self.size += _size(batch)
        while self.size > max_bytes and len(self.batches) > 1:
            oldest = self.batches.pop(0)
            self.size -= _size(oldest)
            self.dropped = oldest.first + len(oldest.events) - 1
        return self.size - before

    def drop(self) -> None:
        """Let all of it go; how far it went is still known."""
        if self.batches:
            last = self.batches[-1]
            self.batches, self.size, self.dropped = [], 0, last.first + len(last.events) - 1

    def read(self, after: int) -> list[bytes]:
        return [
            event
            for batch in self.batches
            for sequence, event in enumerate(batch.events, batch.first)
            if sequence > after
        ]


def _size(batch: EventBatch) -> int:
    return sum(map(len, batch.events))


@dataclass(slots=True)
class Entry:
    """A response as it is kept."""

    record: StoredResponse
    """The columns; its `response` is the skeleton and its `input` is empty, the rest is in `parts`."""
    parts: list[tuple[int, int, Shared]] = field(default_factory=list)
    stream: Stream = field(default_factory=Stream)
    deleted: bool = False

    def items(self, place: int) -> list[bytes]:
        return [shared.data for at, _, shared in self.parts if at == place]

    @property
    def unfinished(self) -> bool:
        return not self.deleted and self.record.status in UNFINISHED

    @property
    def own_bytes(self) -> int:
        return len(self.record.response) + len(self.record.memo) + self.stream.size + _BYTES_PER_PART * len(self.parts)

    @property
    def whole(self) -> StoredResponse:
        fields = [(position, shared.data) for place, position, shared in self.parts if place == FIELD]
        response = join(self.record.response, self.items(OUTPUT), fields)
        return replace(self.record, response=response, input=tuple(self.items(INPUT)))
