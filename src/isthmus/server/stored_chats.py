"""`/v1/chat/completions` with an id, or listed: what was asked for with `store: true`."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.bridge.doors.chat.listed import listed_message
from isthmus.bridge.metadata import check_metadata
from isthmus.bridge.parse import decode_json
from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.http import send_bytes, send_json
from isthmus.server.lists import asked_order, page_of
from isthmus.server.options import query, whole_number

_METADATA: Final = re.compile(r"metadata\[(?P<name>.*)\]", re.DOTALL)


class StoredChatsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = query(scope)
        named = ((_METADATA.fullmatch(name), value) for name, value in asked.items())
        page = await self._gateway.chats.find(
            caller_of(scope),
            limit=whole_number(asked, "limit", default=20, low=1, high=100),
            after=asked.get("after"),
            order=asked_order(asked, "asc"),
            model=asked.get("model"),
            metadata={found["name"]: value for found, value in named if found},
        )
        ids = [record.id for record in page.chats]
        await send_json(send, 200, page_of([msgspec.Raw(record.response) for record in page.chats], ids, page.has_more))

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 200, (await self._gateway.chats.retrieve(caller_of(scope), _id(scope))).response)

    async def update(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await self._gateway.read(body_of(scope), decode_json)
        if not isinstance(body, dict) or "metadata" not in body:
            message = "`metadata` is missing; send the pairs that the completion should have, or null for none"
            raise RequestRefused(message, code="missing_required_parameter", param="metadata")
        found = await self._gateway.chats.update(caller_of(scope), _id(scope), check_metadata(body["metadata"]))
        await send_bytes(send, 200, found.response)

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._gateway.chats.delete(caller_of(scope), _id(scope))
        await send_json(send, 200, {"id": _id(scope), "object": "chat.completion.deleted", "deleted": True})

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        id, asked = _id(scope), query(scope)
        sent = await self._gateway.chats.messages(caller_of(scope), id)
        listed = [listed_message(id, index, message) for index, message in enumerate(sent)]
        if asked_order(asked, "asc") == "desc":
            listed.reverse()
        start, limit = 0, whole_number(asked, "limit", default=20, low=1, high=100)
        if (after := asked.get("after")) is not None:
            start = next((place for place, message in enumerate(listed, 1) if message["id"] == after), 0)
            if not start:
                message = f"`after` names no message of `{id}`: `{after}`; use an id from the list"
                raise RequestRefused(message, code="invalid_value", param="after")
        page = listed[start : start + limit]
        await send_json(send, 200, page_of(page, [each["id"] for each in page], len(listed) > start + limit))


def _id(scope: Scope) -> str:
    id: str = scope["path_params"]["id"]
    return id
