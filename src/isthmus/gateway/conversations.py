"""Conversations as clients handle them: begun, described, read, changed by hand and ended, each by its owner.

What a turn says is added with its end (`keeping`), in the step that saves it; until then the conversation is its own
(`locks`). Every item gets an id here if it has none, and is kept without the credentials that it may carry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from isthmus.bridge.parse import Request, conversation_of
from isthmus.bridge.tools.credentials import showable_item
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.gateway.history import load_named, no_conversation
from isthmus.gateway.locks import Lock, Locks
from isthmus.gateway.settings import Settings
from isthmus.ports import ItemPage, Store, StoredConversation, conversation_lease, conversation_locked
from isthmus.protocol.items import ID_PREFIXES
from isthmus.protocol.json import JsonObject

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_encode: Final = msgspec.json.Encoder().encode


class Conversations:
    def __init__(
        self,
        store: Store,
        locks: Locks,
        settings: Settings,
        *,
        now: Callable[[], float],
        new_id: Callable[[str], str],
    ) -> None:
        self._store = store
        self._settings = settings
        self._now = now
        self._new_id = new_id
        self._locks = locks

    async def create(
        self, caller: Caller, items: Sequence[JsonObject], metadata: Mapping[str, str]
    ) -> StoredConversation:
        await self._store.check()
        kept = await self._named(caller, items)
        record = StoredConversation(self._new_id("conv"), float(int(self._now())), _encode(metadata), caller.owner)
        await self._store.start_conversation(record, kept)
        return record

    async def retrieve(self, caller: Caller, id: str) -> StoredConversation:
        return _there(id, await self._store.conversation(id, owner=caller.owner))

    async def update(self, caller: Caller, id: str, metadata: Mapping[str, str]) -> StoredConversation:
        return _there(id, await self._store.describe_conversation(id, _encode(metadata), owner=caller.owner))

    async def delete(self, caller: Caller, id: str) -> None:
        """At once, also while a turn is under way: that ends as it would, and adds nothing."""
        if not await self._store.end_conversation(id, owner=caller.owner):
            raise no_conversation(id)

    async def add(self, caller: Caller, id: str, items: Sequence[JsonObject]) -> list[bytes]:
        """The items as they are kept."""
        kept, most = await self._named(caller, items), self._settings.limits.max_items
        if not await self._store.add_items(id, kept, owner=caller.owner, most=most, at=self._now()):
            raise no_conversation(id)
        return kept

    async def items(
        self, caller: Caller, id: str, *, limit: int = 20, after: str | None = None, order: Any = "desc"
    ) -> ItemPage:
        page = await self._store.conversation_items(id, owner=caller.owner, limit=limit, after=after, order=order)
        if page is None:
            raise no_conversation(id)
        return page

    async def item(self, caller: Caller, id: str, item_id: str) -> bytes:
        found = await self._store.conversation_item(id, item_id, owner=caller.owner)
        if found is None:
            await self.retrieve(caller, id)
            raise _no_item(id, item_id)
        return found

    async def remove(self, caller: Caller, id: str, item_id: str) -> StoredConversation:
        if not await self._store.remove_item(id, item_id, owner=caller.owner):
            await self.retrieve(caller, id)
            raise _no_item(id, item_id)
        return await self.retrieve(caller, id)

    async def lock(self, caller: Caller, request: Request, run: str) -> Lock | None:
        """Have the conversation that a request names for this run alone; `None`: it names none."""
        conversation = conversation_of(request.body)
        if conversation is None:
            return None
        await self.retrieve(caller, conversation)  # nothing is written for one that is not there
        lock = await self._locks.take(caller.owner, conversation_lease(conversation), run)
        if lock is None:
            raise conversation_locked(conversation)
        return lock

    async def _named(self, caller: Caller, items: Sequence[JsonObject]) -> list[bytes]:
        """Each with an id. What a reference names is said again, so it gets another one."""
        named = await load_named(self._store, items, caller.owner, "items", self._settings.limits)
        return [_encode(self._with_id(_meant(item, named))) for item in items]

    def _with_id(self, item: JsonObject) -> JsonObject:
        id = item.get("id") or self._new_id(ID_PREFIXES.get(item["type"], "item"))
        return {**showable_item(item), "id": id}


def _meant(item: JsonObject, named: Mapping[str, bytes]) -> JsonObject:
    if item["type"] != "item_reference":
        return item
    return {"type": "message", **_decode(named[item["id"]]), "id": None}


def _there(id: str, found: StoredConversation | None) -> StoredConversation:
    if found is None:
        raise no_conversation(id)
    return found


def _no_item(id: str, item_id: str) -> RequestRefused:
    words = f"conversation `{id}` has no item `{item_id}`"
    return RequestRefused(words, code="item_not_in_conversation", param="item_id")
