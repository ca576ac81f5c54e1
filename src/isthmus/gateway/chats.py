"""Chat completions that were asked to be kept: saved before they are told, then listed, renamed and forgotten.

A completion is stored as it was told, with the messages that it answers as they were sent. What failed or was cut off
by its client is no completion, and is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from isthmus.bridge.limits import HEAVY_TEXT
from isthmus.bridge.turn import Done
from isthmus.bridge.types.plan import Plan
from isthmus.conduct.around import Save
from isthmus.conduct.aside import Aside
from isthmus.errors import RequestRefused
from isthmus.gateway.caller import Caller
from isthmus.ports import ChatPage, Store, StoredResponse
from isthmus.protocol.chat import CHAT_ID
from isthmus.protocol.json import JsonObject
from isthmus.protocol.large import encode_sized
from isthmus.protocol.response import FinishedResponse, weigh_response

if TYPE_CHECKING:  # only words here
    from isthmus.ports.traces import Tracing

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(JsonObject).decode


@dataclass(frozen=True, slots=True)
class AsChat:
    """How a response becomes the completion that is kept of it."""

    messages: Sequence[JsonObject]
    """As they were sent."""
    render: Callable[[FinishedResponse], JsonObject]


class StoredChats:
    def __init__(self, store: Store, aside: Aside, tracing: Tracing | None = None) -> None:
        self._store = store
        self._aside = aside
        self._tracing = tracing

    def saver(self, chat: AsChat, owner: str, created: float, *, heavy: bool) -> Save:
        """Keeps a completion that has ended well; told is what is kept."""

        async def save(done: Done, plan: Plan) -> Done:
            response = done.response
            if response["status"] not in ("completed", "incomplete"):
                return done
            metadata, weight = response["metadata"] or {}, weigh_response(response)

            def write() -> tuple[str, bytes, tuple[bytes, ...]]:
                completion = {**chat.render(response), "metadata": metadata}
                return completion["id"], encode_sized(completion, weight), tuple(map(_encode, chat.messages))

            id, completion, messages = await self._aside.do(write, heavy=heavy or weight > HEAVY_TEXT)
            record = StoredResponse(
                id=id,
                response=completion,
                input=messages,
                created_at=created,
                status=response["status"],
                model=response["model"],
                provider=plan.target.provider,
                owner=owner,
            )
            await self._store.save_chat(record, metadata)
            return done

        return save

    async def retrieve(self, caller: Caller, id: str) -> StoredResponse:
        found = await self._store.load(id, owner=caller.owner) if is_chat(id) else None
        if found is None:
            raise _not_found(id)
        return found

    async def update(self, caller: Caller, id: str, metadata: dict[str, str]) -> StoredResponse:
        found = await self._store.update_chat(id, metadata, owner=caller.owner)
        if found is None:
            raise _not_found(id)
        return found

    async def delete(self, caller: Caller, id: str) -> None:
        if self._tracing is not None:
            await self._tracing.room_to_forget()
        if not is_chat(id) or not await self._store.delete(id, owner=caller.owner):
            raise _not_found(id)
        if self._tracing is not None:
            self._tracing.forget(caller.owner, f"resp_{id.removeprefix(CHAT_ID)}")

    async def find(
        self,
        caller: Caller,
        *,
        limit: int = 20,
        after: str | None = None,
        order: Literal["asc", "desc"] = "asc",
        model: str | None = None,
        metadata: dict[str, str] | None = None,
    ) -> ChatPage:
        return await self._store.list_chats(
            owner=caller.owner, limit=limit, after=after, order=order, model=model, metadata=metadata
        )

    async def messages(self, caller: Caller, id: str) -> list[JsonObject]:
        """Those that it answers, as they were sent."""
        return [_decode(message) for message in (await self.retrieve(caller, id)).input]


def is_chat(id: str) -> bool:
    """Completions are stored beside responses, and told from them by their ids."""
    return id.startswith(CHAT_ID)


def _not_found(id: str) -> RequestRefused:
    words = f"no chat completion `{id}` is stored here; one is kept when it is asked for with `store: true`"
    return RequestRefused(words, code="not_found", param="completion_id")
