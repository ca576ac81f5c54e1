"""The conversations of the memory store: the same contract, and bounded; the longest unused one is evicted first."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NamedTuple

from isthmus.ports import (
    APPENDING,
    LOCAL,
    ConversationTurns,
    ItemPage,
    StoredConversation,
    StoredResponse,
    conversation_lease,
    conversation_locked,
)
from isthmus.store.listing import make_page, with_id
from isthmus.store.memory_leases import Changes, Leases
from isthmus.store.memory_parts import Pool, Shared
from isthmus.store.pieces import INPUT, OUTPUT, Piece, own_id
from isthmus.store.refusals import conversation_moved, taken_id, too_many_items, unknown_after
from isthmus.store.said import MOMENTARY, export_conversation, kind_of, name_said

_BYTES_PER_ITEM: Final = 120
"""What it costs to hold an item, beside what it says."""


class _Item(NamedTuple):
    position: int
    item_id: str
    ours: bool
    shared: Shared


@dataclass(slots=True)
class _Kept:
    record: StoredConversation
    used_at: float
    next: int = 0
    items: list[_Item] = field(default_factory=list)
    positions: dict[str, int] = field(default_factory=dict)
    """Of each item by its id."""

    def index(self, position: int) -> int:
        return bisect_left(self.items, position, key=lambda item: item.position)


class MemoryConversations:
    """A part of the store, which counts their bytes with its own."""

    _pool: Pool
    _leases: Leases
    _changes: Changes
    _max_conversations: int

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[str, _Kept] = {}
        """In order of use, the least recently used first."""
        self._kept_bytes = 0
        """Of all of them, beside what their items say."""

    async def start_conversation(self, record: StoredConversation, items: Sequence[bytes] = ()) -> None:
        kept = _Kept(record, record.created_at)
        _refuse_taken(kept, items)
        self._kept[record.id] = kept
        self._kept_bytes += _BYTES_PER_ITEM + len(record.metadata)
        self._put_in(kept, items)
        self._make_room()

    async def conversation(self, id: str, *, owner: str = LOCAL) -> StoredConversation | None:
        kept = self._own(id, owner)
        return None if kept is None else kept.record

    async def describe_conversation(self, id: str, metadata: bytes, *, owner: str = LOCAL) -> StoredConversation | None:
        if (kept := self._own(id, owner)) is None:
            return None
        self._kept_bytes += len(metadata) - len(kept.record.metadata)
        kept.record = replace(kept.record, metadata=metadata)
        return kept.record

    async def end_conversation(self, id: str, *, owner: str = LOCAL) -> bool:
        if self._own(id, owner) is None:
            return False
        self._end(id)
        return True

    async def add_items(
        self, id: str, items: Sequence[bytes], *, owner: str = LOCAL, most: int, at: float = 0.0
    ) -> bool:
        if (kept := self._own(id, owner)) is None:
            return False
        self._refuse_locked(kept)
        if len(kept.items) + len(items) > most:
            raise too_many_items(id, most)
        _refuse_taken(kept, items)
        self._put_in(kept, items)
        kept.used_at = max(kept.used_at, at)
        self._make_room()
        return True

    async def remove_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bool:
        kept = self._own(id, owner)
        if kept is None or item_id not in kept.positions:
            return False
        self._refuse_locked(kept)
        item = kept.items.pop(kept.index(kept.positions.pop(item_id)))
        self._pool.release(item.shared)
        self._kept_bytes -= _BYTES_PER_ITEM
        kept.next += 1
        self._changes.tell()
        return True

    async def conversation_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bytes | None:
        kept = self._own(id, owner)
        if kept is None or item_id not in kept.positions:
            return None
        return with_id(kept.items[kept.index(kept.positions[item_id])].shared.data, item_id)

    async def conversation_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        if (kept := self._own(id, owner)) is None:
            return None
        if after is not None and after not in kept.positions:
            raise unknown_after(after)
        behind = None if after is None else kept.index(kept.positions[after])
        if order == "asc":
            first = 0 if behind is None else behind + 1
            page, more = kept.items[first : first + limit], len(kept.items) > first + limit
        else:
            end = len(kept.items) if behind is None else behind
            page, more = kept.items[max(0, end - limit) : end][::-1], end > limit
        return make_page([(item.item_id, item.shared.data) for item in page], more)

    async def conversation_turns(
        self, id: str, *, owner: str = LOCAL, most: int, before: int | None = None
    ) -> ConversationTurns | None:
        if (kept := self._own(id, owner)) is None:
            return None
        end = bisect_right(kept.items, math.inf if before is None else before - 1, key=lambda item: item.position)
        self._use(kept)
        said = [(item.shared.data, item.ours) for item in kept.items[: min(end, most + 1)]]
        return ConversationTurns(tuple(said), kept.next)

    async def export_conversations(self) -> AsyncIterator[bytes]:
        for kept in sorted(self._kept.values(), key=lambda kept: kept.record.created_at):
            items = [with_id(item.shared.data, item.item_id) for item in kept.items]
            yield export_conversation(kept.record, items)

    # ── for the rest of the store ──────────────────────────────────────────────────────────────────

    def _find_said(self, item_id: str, owner: str) -> bytes | None:
        """The item that some conversation of this owner calls so."""
        for kept in self._kept.values():
            if kept.record.owner == owner and item_id in kept.positions:
                return with_id(kept.items[kept.index(kept.positions[item_id])].shared.data, item_id)
        return None

    def _conversation_of(self, record: StoredResponse) -> _Kept | None:
        """The one that a response says something to; refused where it has moved on."""
        if record.conversation is None or record.status not in APPENDING:
            return None
        kept = self._own(record.conversation, record.owner)
        if kept is not None and kept.next != record.conversation_at:
            raise conversation_moved(record.conversation)
        return kept

    def _append_turn(self, kept: _Kept, record: StoredResponse, parts: Sequence[tuple[int, int, Shared]]) -> None:
        for place, position, shared in parts:
            if place not in (INPUT, OUTPUT) or (place == INPUT and kind_of(shared.data) in MOMENTARY):
                continue
            item_id = shared.item_id
            if item_id is None or item_id in kept.positions:
                item_id = name_said(shared.data, record.id, place, position, kept.positions.__contains__)
            self._put(kept, item_id, place == OUTPUT, shared.data)
        kept.used_at = max(kept.used_at, record.created_at)
        self._use(kept)

    def _prune_conversations(self, older_than: float) -> int:
        old = [id for id, kept in self._kept.items() if kept.used_at < older_than and not self._locked(kept)]
        for id in old:
            self._end(id)
        return len(old)

    def _evict_conversations(self, too_much: Callable[[], bool]) -> None:
        while len(self._kept) > self._max_conversations or (len(self._kept) > 1 and too_much()):
            free = (id for id, kept in self._kept.items() if not self._locked(kept))
            self._end(next(free, next(iter(self._kept))))

    def _make_room(self) -> None:
        """What the store does about its bounds after something was added."""
        self._evict_conversations(lambda: False)

    # ── below all of that ──────────────────────────────────────────────────────────────────────────

    def _own(self, id: str, owner: str) -> _Kept | None:
        kept = self._kept.get(id)
        return kept if kept is not None and kept.record.owner == owner else None

    def _use(self, kept: _Kept) -> None:
        self._kept[kept.record.id] = self._kept.pop(kept.record.id)

    def _put_in(self, kept: _Kept, items: Sequence[bytes]) -> None:
        for data in items:
            self._put(kept, own_id(data) or "", False, data)
        self._use(kept)
        self._changes.tell()

    def _put(self, kept: _Kept, item_id: str, ours: bool, data: bytes) -> None:
        shared = self._pool.take(kept.record.owner, Piece(INPUT, 0, data))
        kept.items.append(_Item(kept.next, item_id, ours, shared))
        kept.positions[item_id] = kept.next
        kept.next += 1
        self._kept_bytes += _BYTES_PER_ITEM

    def _end(self, id: str) -> None:
        kept = self._kept.pop(id)
        for item in kept.items:
            self._pool.release(item.shared)
        self._kept_bytes -= _BYTES_PER_ITEM * (len(kept.items) + 1) + len(kept.record.metadata)
        self._changes.tell()

    def _locked(self, kept: _Kept) -> bool:
        return self._leases.holder((kept.record.owner, conversation_lease(kept.record.id))) is not None

    def _refuse_locked(self, kept: _Kept) -> None:
        if self._locked(kept):
            raise conversation_locked(kept.record.id)


def _refuse_taken(kept: _Kept, items: Sequence[bytes]) -> None:
    seen: set[str] = set()
    for index, data in enumerate(items):
        item_id = own_id(data)
        assert item_id is not None
        if item_id in kept.positions or item_id in seen:
            raise taken_id(item_id, index)
        seen.add(item_id)
