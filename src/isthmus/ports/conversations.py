"""Conversations: items in their order, which turns are put behind and added to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from isthmus.errors import RequestRefused
from isthmus.ports.records import LOCAL, ItemPage

APPENDING: Final = ("completed", "incomplete")
"""Statuses of a response that says something to its conversation."""


@dataclass(frozen=True, slots=True)
class StoredConversation:
    id: str
    created_at: float
    metadata: bytes = b"{}"
    """A JSON object of texts."""
    owner: str = LOCAL


@dataclass(frozen=True, slots=True)
class ConversationTurns:
    """What a turn in a conversation builds on."""

    items: tuple[tuple[bytes, bool], ...]
    """The oldest first, each with whether a response said it."""
    at: int
    """Where the conversation stands: every change of its items leads to a higher number."""


class Conversations(Protocol):
    """Every item has an id that no other one of its conversation has: its own, or one made from the turn it came with.

    `Store.save` of a response that names a conversation, and that ended as `completed` or `incomplete`, adds its input
    and its output in the same step: nobody sees the one without the other. It is refused (`conversation_moved`) where
    the conversation does not stand any more where the turn was begun (`StoredResponse.conversation_at`). To a
    conversation that was deleted meanwhile nothing is added, and the response is kept.

    Items that are put in or taken out by hand are refused while somebody holds the lease `conversation:<id>`: a turn is
    under way then, and whatever it does not know of would stand before what it says. So all that happens to the items
    of a conversation happens one after the other.
    """

    async def start_conversation(self, record: StoredConversation, items: Sequence[bytes] = ()) -> None:
        """Keep a new conversation; each of its items has an `id`."""

    async def conversation(self, id: str, *, owner: str = LOCAL) -> StoredConversation | None: ...

    async def describe_conversation(self, id: str, metadata: bytes, *, owner: str = LOCAL) -> StoredConversation | None:
        """Give it other metadata. None: there is no such conversation."""

    async def end_conversation(self, id: str, *, owner: str = LOCAL) -> bool:
        """Forget it and its items; responses that were made in it stay. False: there is none."""

    async def add_items(
        self, id: str, items: Sequence[bytes], *, owner: str = LOCAL, most: int, at: float = 0.0
    ) -> bool:
        """Put items behind all others, each with an `id`; an id that is taken is refused, and so are more than `most`
        items in all. `at` is the time: it was used then. False: there is no such conversation."""

    async def remove_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bool:
        """False: there is no such conversation, or no such item in it."""

    async def conversation_item(self, id: str, item_id: str, *, owner: str = LOCAL) -> bytes | None: ...

    async def conversation_items(
        self,
        id: str,
        *,
        owner: str = LOCAL,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "desc",
    ) -> ItemPage | None:
        """One page; it costs no more in a long conversation. An unknown `after` is refused."""

    async def conversation_turns(
        self, id: str, *, owner: str = LOCAL, most: int, before: int | None = None
    ) -> ConversationTurns | None:
        """All items, or the first `most` and one more; with `before`, those from when it stood there."""

    def export_conversations(self) -> AsyncIterator[bytes]:
        """Every conversation of every owner as one JSON object per line, with its items, oldest first."""


def conversation_locked(id: str) -> RequestRefused:
    return RequestRefused(
        f"a turn is under way in conversation `{id}`; wait for its end, then ask again",
        code="conversation_locked",
        param="conversation",
    )


def conversation_lease(id: str) -> str:
    """The name of the lease that says: a turn of this conversation is under way."""
    return f"conversation:{id}"
