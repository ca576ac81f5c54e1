"""Stored chat completions: found again by model and metadata.

A completion is kept as any response is: its object, and the messages that it answers as its input. `Store.load` and
`Store.delete` know it by its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from isthmus.ports.records import LOCAL, StoredResponse


@dataclass(frozen=True, slots=True)
class ChatPage:
    chats: tuple[StoredResponse, ...]
    has_more: bool


class Chats(Protocol):
    async def save_chat(self, record: StoredResponse, metadata: Mapping[str, str]) -> None:
        """Keep a completion that is over, to be listed under its `model` and this metadata."""

    async def update_chat(self, id: str, metadata: Mapping[str, str], *, owner: str = LOCAL) -> StoredResponse | None:
        """List it under other metadata, and say so in its object. None: no such completion."""

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
        """Those with this model and with all of this metadata, in the order in which they were made.

        An unknown `after` is refused.
        """
