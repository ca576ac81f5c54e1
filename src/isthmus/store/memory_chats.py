"""Chat completions in memory: entries like any response, and beside them what they are listed by."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from isthmus.ports import LOCAL, ChatPage, StoredResponse
from isthmus.store.pieces import with_field
from isthmus.store.refusals import no_such_chat


@dataclass(frozen=True, slots=True)
class Listing:
    """What one is listed by."""

    owner: str
    model: str
    metadata: Mapping[str, str]


class MemoryChats:
    """`ports.Chats`, for the store to have."""

    def __init__(self) -> None:
        super().__init__()
        self._chats: dict[str, Listing] = {}
        """In the order in which they were made."""

    @abstractmethod
    async def save(self, record: StoredResponse) -> bool: ...

    @abstractmethod
    async def load(self, id: str, *, owner: str = LOCAL) -> StoredResponse | None: ...

    async def save_chat(self, record: StoredResponse, metadata: Mapping[str, str]) -> None:
        if await self.save(record):
            self._chats[record.id] = Listing(record.owner, record.model, dict(metadata))

    async def update_chat(self, id: str, metadata: Mapping[str, str], *, owner: str = LOCAL) -> StoredResponse | None:
        record = await self.load(id, owner=owner) if id in self._chats else None
        if record is not None:
            record = with_field(record, "metadata", dict(metadata))
            await self.save_chat(record, metadata)
        return record

    async def list_chats(
        self,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        model: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ChatPage:
        if after is not None and (after not in self._chats or self._chats[after].owner != owner):
            raise no_such_chat(after)
        ids, begun, wanted = list(self._chats), after is None, metadata or {}
        found: list[StoredResponse] = []
        for id in ids if order == "asc" else reversed(ids):
            listing = self._chats[id]
            if begun and listing.owner == owner and _fits(listing, model, wanted):
                if len(found) == limit:
                    return ChatPage(tuple(found), True)
                if (record := await self.load(id, owner=owner)) is not None:
                    found.append(record)
            begun = begun or id == after
        return ChatPage(tuple(found), False)


def _fits(listing: Listing, model: str | None, metadata: Mapping[str, str]) -> bool:
    same = all(listing.metadata.get(name) == value for name, value in metadata.items())
    return same and model in (None, listing.model)
