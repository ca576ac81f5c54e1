"""The store that forgets: everything in this process, nothing after it.

Same contract as the others, and bounded: beyond `max_responses` or `max_bytes` the least recently used response is
evicted. Loading, saving or continuing a response uses it and every turn it builds on, so a live conversation
stays together; continuing one that lost its beginning is refused with `previous_response_not_found`. Conversations go
when no other response is left to go.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from isthmus.ports import (
    ANY_SIZE,
    DEFAULT_MAX_DEPTH,
    EXPIRED_AT_ONCE,
    LOCAL,
    EventBatch,
    Held,
    ItemPage,
    Notice,
    Pruned,
    StoredResponse,
    StoredTurn,
    StoreStats,
    run_lease,
)
from isthmus.store.listing import Place, cut_page, find_place, make_page, name_item
from isthmus.store.memory_chats import MemoryChats
from isthmus.store.memory_conversations import MemoryConversations
from isthmus.store.memory_keys import MemoryKeys
from isthmus.store.memory_learned import MemoryLearned
from isthmus.store.memory_leases import Changes, Leases
from isthmus.store.memory_outbox import MemoryOutbox
from isthmus.store.memory_parts import Entry, Pool, Shared, Stream
from isthmus.store.memory_requests import MemoryRequests
from isthmus.store.memory_spending import MemorySpending
from isthmus.store.pieces import INPUT, OUTPUT, export_line, split, with_status
from isthmus.store.refusals import events_expired, not_found, too_long
from isthmus.store.retention import Row, plan_branches


class MemoryStore(
    MemoryChats, MemoryConversations, MemoryKeys, MemoryLearned, MemoryOutbox, MemoryRequests, MemorySpending
):
    def __init__(
        self,
        *,
        max_responses: int = 10_000,
        max_bytes: int = 256 * 1024 * 1024,
        max_event_bytes: int = 16 * 1024 * 1024,
        max_conversations: int = 10_000,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = now
        self._max_responses = max_responses
        self._max_bytes = max_bytes
        self._max_event_bytes = max_event_bytes
        self._entries: dict[str, Entry] = {}
        """In order of use, the least recently used first."""
        self._own_bytes = 0
        self._serial: dict[str, int] = {}
        """When each id was first saved: the order that retention and exports go by."""
        self._saved = 0
        super().__init__()
        self._pool = Pool()
        self._leases = Leases(now)
        self._changes = Changes()
        self._max_conversations = max_conversations

    async def check(self) -> None:
        """Memory that is there can be written."""

    async def save(
        self,
        record: StoredResponse,
        *,
        events: EventBatch | None = None,
        holder: str | None = None,
        history: Callable[[], tuple[bytes, ...]] | None = None,
        notices: Sequence[Notice] = (),
    ) -> bool:
        if history is not None and not self._has_parent(record):
            record = replace(record, previous_response_id=None, input=(*history(), *record.input))
        if not self._may_write(record.id, record.owner, holder):
            return False
        conversation = self._conversation_of(record)  # refused before anything is written
        if not self._write(record, events):
            return False
        if conversation is not None:
            self._append_turn(conversation, record, self._entries[record.id].parts)
        self._queue(notices)
        self._touch(record.id)
        self._evict()
        return True

    async def load(self, id: str, *, owner: str = LOCAL) -> StoredResponse | None:
        if (entry := self._find(id, owner)) is None:
            return None
        self._touch(id)
        return entry.whole

    async def delete(self, id: str, *, owner: str = LOCAL) -> bool:
        if (entry := self._find(id, owner)) is None:
            return False
        self._own_bytes -= entry.own_bytes
        self._release(entry)
        entry.parts, entry.stream, entry.deleted = [], Stream(), True
        self._chats.pop(id, None)
        entry.record = replace(
            entry.record, response=b"", memo=b"", conversation=None, conversation_at=0, model="", provider=""
        )
        self._changes.tell()
        return True

    async def chain(self, id: str, *, owner: str = LOCAL, max_depth: int = DEFAULT_MAX_DEPTH) -> list[StoredTurn]:
        turns: list[StoredTurn] = []
        at: str | None = id
        while at is not None:
            if (entry := self._find(at, owner)) is None:
                raise not_found(at, id)
            if len(turns) == max_depth:
                raise too_long(id, max_depth)
            record = entry.record
            sent, made = tuple(entry.items(INPUT)), tuple(entry.items(OUTPUT))
            within = (record.conversation, record.conversation_at)
            turns.append(StoredTurn(at, record.status, record.model, record.provider, sent, made, *within))
            at = record.previous_response_id
        self._touch(id)
        turns.reverse()
        return turns

    async def items(self, ids: Sequence[str], *, owner: str = LOCAL, max_bytes: int = ANY_SIZE) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        size = 0
        for id in ids:
            shared = self._pool.find(owner, id) or self._find_unnamed(id, owner)
            said = shared.data if shared is not None else self._find_said(id, owner)
            if said is not None:
                found[id] = said
                size += len(said)
                if size > max_bytes:
                    break
        return found

    async def list_input_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        if self._find(id, owner) is None:
            return None
        entries = [
            (name_item(Place(entry.record.id, place, position), shared.item_id), shared.data)
            for entry in reversed(list(self._ancestry(id, owner)))
            for place, position, shared in entry.parts
            if place == INPUT or (place == OUTPUT and entry.record.id != id)
        ]
        return make_page(*cut_page(entries, limit, after, order))

    async def update_status(
        self,
        id: str,
        status: str,
        *,
        owner: str = LOCAL,
        only_from: Collection[str] = (),
        fields: Mapping[str, Any] | None = None,
        notices: Sequence[Notice] = (),
    ) -> bool:
        entry = self._find(id, owner)
        if entry is None or (only_from and entry.record.status not in only_from):
            return False
        changed = self._write(with_status(entry.whole, status, fields), None)
        if changed:
            self._queue(notices)
        return changed

    async def append_events(self, id: str, batch: EventBatch, *, owner: str = LOCAL, holder: str | None = None) -> bool:
        if not self._may_write(id, owner, holder) or (entry := self._find(id, owner)) is None:
            return False
        self._own_bytes += entry.stream.append(batch, self._max_event_bytes)
        self._evict()
        self._changes.tell()
        return True

    async def events(self, id: str, *, owner: str = LOCAL, after: int = -1) -> list[bytes]:
        if (entry := self._find(id, owner)) is None:
            return []
        if max(after, -1) < entry.stream.dropped:
            raise events_expired(id, after)
        return entry.stream.read(after)

    async def claim(self, name: str, *, owner: str = LOCAL, holder: str, seconds: float) -> bool:
        return self._changes.tell_if(self._leases.claim((owner, name), holder, seconds))

    async def renew(self, holder: str, *, seconds: float) -> Held:
        return self._leases.renew(holder, seconds)

    async def release(self, name: str, *, owner: str = LOCAL, holder: str) -> None:
        self._changes.tell_if(self._leases.release((owner, name), holder))

    async def signal(self, name: str, word: str, *, owner: str = LOCAL) -> bool:
        held, fresh = self._leases.tell((owner, name), word)
        self._changes.tell_if(fresh)
        return held

    async def expired(self, *, most: int = EXPIRED_AT_ONCE) -> list[StoredResponse]:
        left = (entry for entry in self._in_order() if entry.unfinished)
        return [
            entry.whole
            for entry in left
            if self._leases.holder((entry.record.owner, run_lease(entry.record.id))) is None
        ][:most]

    async def watch(self, seconds: float, *, since: int | None = None) -> int:
        return await self._changes.watch(seconds, since)

    async def stats(self) -> StoreStats:
        live = [entry for entry in self._entries.values() if not entry.deleted]
        times = [entry.record.created_at for entry in live]
        return StoreStats(
            responses=len(live),
            deleted=len(self._entries) - len(live),
            unfinished=sum(entry.unfinished for entry in live),
            pieces=len(self._pool),
            bytes=self._bytes,
            oldest=min(times, default=None),
            newest=max(times, default=None),
            conversations=len(self._kept),
            conversation_items=sum(len(kept.items) for kept in self._kept.values()),
        )

    async def prune(
        self,
        *,
        older_than: float | None = None,
        max_bytes: int | None = None,
        events_older_than: float | None = None,
        conversations_older_than: float | None = None,
    ) -> Pruned:
        before, removed = self._bytes, 0
        for entry in self._entries.values():
            if events_older_than is not None and not entry.unfinished and entry.record.created_at < events_older_than:
                self._own_bytes -= entry.stream.size
                entry.stream.drop()
        ended = 0 if conversations_older_than is None else self._prune_conversations(conversations_older_than)
        rows = [
            Row(entry.record.id, entry.record.previous_response_id, entry.record.created_at, entry.unfinished)
            for entry in self._in_order()
        ]
        for branch in plan_branches(rows):
            too_old = older_than is not None and branch.last_used < older_than
            too_much = max_bytes is not None and self._bytes > max_bytes
            if not too_old and not too_much:
                break
            for key in branch.keys:
                self._forget(key)
            removed += len(branch.keys)
        self._leases.sweep()
        return Pruned(removed, before - self._bytes, ended)

    async def export(self) -> AsyncIterator[bytes]:
        for entry in list(self._in_order()):
            if not entry.deleted:
                yield export_line(entry.whole)

    async def aclose(self) -> None:
        self._entries.clear()
        self._kept.clear()
        self._lessons.clear()
        self._words.clear()
        self._chats.clear()
        self._notices.clear()

    def _has_parent(self, record: StoredResponse) -> bool:
        """Also one that was deleted on purpose: what was built on it cannot be continued any more."""
        entry = self._entries.get(record.previous_response_id or "")
        return entry is not None and entry.record.owner == record.owner

    def _find(self, id: str, owner: str) -> Entry | None:
        entry = self._entries.get(id)
        return entry if entry is not None and not entry.deleted and entry.record.owner == owner else None

    def _write(self, record: StoredResponse, events: EventBatch | None) -> bool:
        entry = self._entries.get(record.id)
        if entry is not None:
            if (entry.record.owner, entry.record.previous_response_id) != (record.owner, record.previous_response_id):
                raise ValueError(f"response {record.id} already exists with another owner or parent")
            if entry.deleted:
                return False
        skeleton, pieces = split(record)
        stream = entry.stream if entry is not None else Stream()
        if events is not None:
            stream.check(events)
        parts = [(piece.place, piece.position, self._pool.take(record.owner, piece)) for piece in pieces]
        if entry is None:
            entry = self._entries[record.id] = Entry(record)
            self._saved += 1
            self._serial[record.id] = self._saved
        else:
            self._own_bytes -= entry.own_bytes
            self._release(entry)
        entry.record, entry.parts, entry.stream = replace(record, response=skeleton, input=()), parts, stream
        if events is not None:
            stream.append(events, self._max_event_bytes)
        self._own_bytes += entry.own_bytes
        self._changes.tell()
        return True

    def _may_write(self, id: str, owner: str, holder: str | None) -> bool:
        """Whether a response is still for this holder to write: nobody else is at it, and nobody has finished it."""
        if holder is None:
            return True
        entry = self._find(id, owner)
        return (entry is None or entry.unfinished) and self._leases.holder((owner, run_lease(id))) in (None, holder)

    def _find_unnamed(self, id: str, owner: str) -> Shared | None:
        place = find_place(id)
        entry = self._find(place.response_id, owner) if place else None
        if place is None or entry is None:
            return None
        wanted = (place.place, place.position)
        return next((part for at, position, part in entry.parts if (at, position) == wanted and not part.item_id), None)

    def _ancestry(self, id: str, owner: str) -> Iterator[Entry]:
        """The response and the turns it builds on, newest first, as far back as they are known."""
        at: str | None = id
        for _ in range(len(self._entries)):
            if at is None or (entry := self._find(at, owner)) is None:
                return
            yield entry
            at = entry.record.previous_response_id

    def _in_order(self) -> list[Entry]:
        return sorted(self._entries.values(), key=lambda entry: self._serial[entry.record.id])

    def _touch(self, id: str) -> None:
        for entry in reversed(list(self._ancestry(id, self._entries[id].record.owner))):
            self._entries[entry.record.id] = self._entries.pop(entry.record.id)

    def _evict(self) -> None:
        while len(self._entries) > 1 and (len(self._entries) > self._max_responses or self._bytes > self._max_bytes):
            oldest = next(
                (id for id, entry in self._entries.items() if not entry.unfinished), next(iter(self._entries))
            )
            self._forget(oldest)
        self._evict_conversations(lambda: self._bytes > self._max_bytes)

    def _make_room(self) -> None:
        self._evict()

    def _forget(self, id: str) -> None:
        entry = self._entries.pop(id)
        self._chats.pop(id, None)
        del self._serial[id]
        self._own_bytes -= entry.own_bytes
        self._release(entry)

    def _release(self, entry: Entry) -> None:
        for _, _, shared in entry.parts:
            self._pool.release(shared)

    @property
    def _bytes(self) -> int:
        return self._own_bytes + self._pool.size + self._kept_bytes
