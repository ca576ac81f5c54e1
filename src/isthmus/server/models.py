"""`/v1/models`: OpenAI's list, of what the servers really serve; for Codex with the catalogue that it reads (`models`),
for clients of Anthropic's API in the pages that those read.

The catalogue is large, because each of its entries has the model's instructions: nobody else is sent it.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Receive, Scope, Send

from isthmus.bridge.types.clients import CODEX
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.json import JsonObject
from isthmus.providers.catalog import Offered
from isthmus.providers.codex_catalog import codex_catalogue
from isthmus.server.anthropic import PREFIX
from isthmus.server.callers import caller_of
from isthmus.server.exchange import exchange_of
from isthmus.server.http import send_json
from isthmus.server.options import query

_CREATED: Final = 1_767_225_600
"""A model list has no honest creation time; clients only want a number."""


class ModelsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        listed = await self._gateway.offer.models(caller_of(scope))
        if exchange_of(scope).anthropic:
            from isthmus.server.anthropic_models import anthropic_page

            models = {id: offered.model for id, offered in listed.items() if not offered.embeds}
            await send_json(send, 200, anthropic_page(models, query(scope)))
            return
        body: JsonObject = {"object": "list", "data": [openai_model(id, offered) for id, offered in listed.items()]}
        if _is_codex(scope):
            body |= codex_catalogue({id: offered.model for id, offered in listed.items() if not offered.embeds})
            can = {"images": self._gateway.draws, "search": self._gateway.searches}
            if any(can.values()):  # for `isthmus codex setup --gateway`
                body["isthmus"] = {what: told for what, told in can.items() if told}
        await send_json(send, 200, body)

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        if exchange_of(scope).anthropic:
            from isthmus.server.anthropic_models import anthropic_model

            id = self._gateway.directory.unprefixed(id, PREFIX)
            found = await self._gateway.offer.describe(id, caller_of(scope))
            await send_json(send, 200, anthropic_model(id, found.model))
            return
        await send_json(send, 200, openai_model(id, await self._gateway.offer.describe(id, caller_of(scope))))


def _is_codex(scope: Scope) -> bool:
    """It says so in its headers, and asks with its version (`?client_version=0.166.0`), as nobody else does."""
    return caller_of(scope).client is CODEX or "client_version" in query(scope)


def openai_model(id: str, offered: Offered) -> JsonObject:
    model = offered.model
    facts: JsonObject = {"provider": model.provider, "model": model.model, "source": offered.source}
    if offered.heard_at is not None:
        facts["heard_at"] = int(offered.heard_at)
    if not offered.served:
        facts["served"] = False
    if offered.embeds:
        facts["embeddings"] = True
    else:
        facts |= _abilities(offered)
    shown: JsonObject = {"id": id, "object": "model", "created": _CREATED, "owned_by": model.provider}
    if offered.shutdown is not None:
        shown["shutdown_date"] = offered.shutdown
    return {**shown, "isthmus": facts}


def _abilities(offered: Offered) -> JsonObject:
    model = offered.model
    facts: JsonObject = {"input": ["text", *model.input]}
    if model.context is not None:
        facts["context_window"] = model.context
    if model.output is not None:
        facts["max_output_tokens"] = model.output
    if model.cost.input is not None and model.cost.output is not None:
        facts["cost"] = {"input": model.cost.input, "output": model.cost.output}
    if model.efforts:
        facts["reasoning_efforts"] = list(model.efforts)
    return facts
