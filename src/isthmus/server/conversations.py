"""`/v1/conversations` and what hangs below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.bridge.doors.conversations.read import check_includes, read_change, read_items, read_new
from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.ports import StoredConversation
from isthmus.protocol.json import JsonObject
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.http import send_json
from isthmus.server.listed import listed_in_conversation
from isthmus.server.options import query, query_list, whole_number

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ConversationsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = await self._gateway.read(body_of(scope), read_new)
        made = await self._gateway.conversations.create(caller_of(scope), asked.items, asked.metadata)
        await send_json(send, 200, _shown(made))

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = await self._gateway.conversations.retrieve(caller_of(scope), _id(scope))
        await send_json(send, 200, _shown(found))

    async def update(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = await self._gateway.read(body_of(scope), read_change)
        changed = await self._gateway.conversations.update(caller_of(scope), _id(scope), asked.metadata)
        await send_json(send, 200, _shown(changed))

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gateway.conversations.delete(caller_of(scope), _id(scope))
        await send_json(send, 200, {"id": _id(scope), "object": "conversation.deleted", "deleted": True})

    async def add_items(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_includes(query_list(scope, "include"))
        asked = await self._gateway.read(body_of(scope), read_items)
        kept = await self._gateway.conversations.add(caller_of(scope), _id(scope), asked.items)
        await send_json(send, 200, _list(kept, has_more=False))

    async def list_items(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_includes(query_list(scope, "include"))
        asked = query(scope)
        order = asked.get("order", "desc")
        if order not in ("asc", "desc"):
            raise RequestRefused("`order` must be `asc` or `desc`", code="invalid_value", param="order")
        page = await self._gateway.conversations.items(
            caller_of(scope),
            _id(scope),
            limit=whole_number(asked, "limit", default=20, low=1, high=100),
            after=asked.get("after"),
            order=order,
        )
        await send_json(send, 200, _list(page.items, has_more=page.has_more))

    async def retrieve_item(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_includes(query_list(scope, "include"))
        found = await self._gateway.conversations.item(caller_of(scope), _id(scope), scope["path_params"]["item_id"])
        await send_json(send, 200, listed_in_conversation(_decode(found)))

    async def delete_item(self, scope: Scope, receive: Receive, send: Send) -> None:
        left = await self._gateway.conversations.remove(caller_of(scope), _id(scope), scope["path_params"]["item_id"])
        await send_json(send, 200, _shown(left))


def _id(scope: Scope) -> str:
    id: str = scope["path_params"]["id"]
    return id


def _shown(record: StoredConversation) -> JsonObject:
    return {
        "id": record.id,
        "object": "conversation",
        "created_at": int(record.created_at),
        "metadata": _decode(record.metadata),
    }


def _list(items: Sequence[bytes], *, has_more: bool) -> JsonObject:
    data = [listed_in_conversation(_decode(item)) for item in items]
    ends = (data[0]["id"], data[-1]["id"]) if data else (None, None)
    return {"object": "list", "data": data, "first_id": ends[0], "last_id": ends[1], "has_more": has_more}
