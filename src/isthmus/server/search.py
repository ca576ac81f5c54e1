"""`/v1/alpha/search`: Codex's own search. Whatever happens is a 200 with words in `output`: it reads nothing else."""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from starlette.types import Receive, Scope, Send

from isthmus.errors import IsthmusError
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.scopes import check_tool
from isthmus.log import tell
from isthmus.server.bodies import body_of
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.http import send_json
from isthmus.tools.search.standalone import said

log: Final = logging.getLogger("isthmus.server")


class SearchApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_tool(caller_of(scope), "web_search")
        try:
            body = msgspec.json.decode(body_of(scope))
        except (msgspec.DecodeError, RecursionError):
            await send_json(send, 200, said("The search failed: its request is no JSON."))
            return
        try:
            async with self._gateway.gates.request(caller_of(scope)):
                answer = await self._gateway.search.answer(caller_of(scope).owner, body)
        except IsthmusError as error:
            answer = said(f"The search failed: {error.message}")
        except Exception as error:
            tell(log, "error", "request.broken", id=exchange_of(scope).id, trace=error)
            answer = said("The search failed: the gateway has a mistake, which its log tells of.")
        await send_json(send, 200, answer)


async def send_in_words(send: Send, error: IsthmusError) -> None:
    """In place of an error, where nobody reads one."""
    await send_json(send, 200, said(f"The search failed: {error.message}"))
