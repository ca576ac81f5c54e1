"""`/v1/models`: OpenAI's list and, beside it, the catalogue that Codex reads (`models`)."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive, Scope, Send

from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.json import JsonObject
from isthmus.providers.catalog import KnownModel, describe_model
from isthmus.providers.codex_catalog import codex_catalogue
from isthmus.server.http import send_json

_CREATED: Final = 1_767_225_600
"""A model list has no honest creation time; clients only want a number."""
_PATIENCE: Final = 1.0
"""Seconds that a list of models waits for servers that are being asked: Codex reads it once, when it starts."""


class ModelsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        listed = await self._models()
        body: JsonObject = {
            "object": "list",
            "data": [_openai_shape(id, model) for id, model in listed.items()],
            **codex_catalogue(listed),
        }
        await send_json(send, 200, body)

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        model = (await self._models()).get(id)
        if model is None:
            candidate = self._gateway.directory.find(id)
            if "/" not in id:
                raise RequestRefused(f"no model `{id}`; `/v1/models` lists what there is", code="model_not_found")
            model = describe_model(candidate.served.provider, candidate.target.model)
        await send_json(send, 200, _openai_shape(id, model))

    async def _models(self) -> dict[str, KnownModel]:
        """The default first, then aliases, then every model that the providers or their files name."""
        directory = self._gateway.directory
        await self._gateway.words.settled(_PATIENCE)
        listed: dict[str, KnownModel] = {}
        for alias in (directory.default, *directory.aliases):
            if alias and alias != "*":
                candidate = directory.find(alias)
                listed[alias] = describe_model(candidate.served.provider, candidate.target.model)
        for name, served in directory.served.items():
            for model in await served.models():
                listed.setdefault(f"{name}/{model.model}", model)
        return listed


def _openai_shape(id: str, model: KnownModel) -> JsonObject:
    facts: JsonObject = {"provider": model.provider, "model": model.model, "input": ["text", *model.input]}
    if model.context is not None:
        facts["context_window"] = model.context
    if model.output is not None:
        facts["max_output_tokens"] = model.output
    if model.efforts:
        facts["reasoning_efforts"] = list(model.efforts)
    return {"id": id, "object": "model", "created": _CREATED, "owned_by": model.provider, "isthmus": facts}
