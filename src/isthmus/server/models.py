"""`/v1/models`: OpenAI's list and, beside it, the catalogue that Codex reads (`models`); to clients of Anthropic's API
(they send `anthropic-version`) the pages that they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from starlette.types import Receive, Scope, Send

from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.json import JsonObject
from isthmus.providers.catalog import KnownModel, describe_model
from isthmus.providers.codex_catalog import codex_catalogue
from isthmus.server.exchange import exchange_of
from isthmus.server.http import send_json
from isthmus.server.messages import PREFIX
from isthmus.server.options import query, whole_number

_CREATED: Final = 1_767_225_600
_CREATED_TEXT: Final = "2026-01-01T00:00:00Z"
"""A model list has no honest creation time; clients only want a number, or a date."""
_OFFERED: Final = ("claude", "anthropic")
_PATIENCE: Final = 1.0
"""Seconds that a list of models waits for servers that are being asked: Codex reads it once, when it starts."""


class ModelsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        listed = await self._models()
        if exchange_of(scope).anthropic:
            await send_json(send, 200, _page(_with_prefixed(listed), query(scope)))
            return
        body: JsonObject = {
            "object": "list",
            "data": [_openai_shape(id, model) for id, model in listed.items()],
            **codex_catalogue(listed),
        }
        await send_json(send, 200, body)

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        if exchange_of(scope).anthropic:
            id = self._gateway.directory.unprefixed(id, PREFIX)
        model = (await self._models()).get(id)
        if model is None:
            candidate = self._gateway.directory.find(id)
            if "/" not in id:
                raise RequestRefused(f"no model `{id}`; `/v1/models` lists what there is", code="model_not_found")
            model = describe_model(candidate.served.provider, candidate.target.model)
        shape = _anthropic_shape if exchange_of(scope).anthropic else _openai_shape
        await send_json(send, 200, shape(id, model))

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


def _with_prefixed(listed: dict[str, KnownModel]) -> dict[str, KnownModel]:
    """Behind the models themselves once more those that Claude Code would not offer, under names that it does."""
    hidden = {id: model for id, model in listed.items() if not id.startswith(_OFFERED)}
    return {**listed, **{f"{PREFIX}{id}": replace(model, title=id) for id, model in hidden.items()}}


def _page(listed: dict[str, KnownModel], asked: Mapping[str, str]) -> JsonObject:
    limit, ids = whole_number(asked, "limit", default=20, low=1, high=1_000), list(listed)
    after, before = _place(ids, asked, "after_id"), _place(ids, asked, "before_id")
    if before is not None:
        begin = max(before - limit, 0)
        chosen, more = ids[begin:before], begin > 0
    else:
        begin = 0 if after is None else after + 1
        chosen, more = ids[begin : begin + limit], begin + limit < len(ids)
    return {
        "data": [_anthropic_shape(id, listed[id]) for id in chosen],
        "has_more": more,
        "first_id": chosen[0] if chosen else None,
        "last_id": chosen[-1] if chosen else None,
    }


def _place(ids: list[str], asked: Mapping[str, str], name: str) -> int | None:
    given = asked.get(name)
    if not given:
        return None
    if given not in ids:
        raise RequestRefused(f"`{name}` is `{given}`, which is no model of this list", code="invalid_value", param=name)
    return ids.index(given)


def _anthropic_shape(id: str, model: KnownModel) -> JsonObject:
    return {
        "type": "model",
        "id": id,
        "display_name": model.title,
        "created_at": _CREATED_TEXT,
        "lifecycle": "active",
        "max_input_tokens": model.context,
        "max_tokens": model.output,
        "isthmus": {"provider": model.provider, "model": model.model, "input": ["text", *model.input]},
    }


def _openai_shape(id: str, model: KnownModel) -> JsonObject:
    facts: JsonObject = {"provider": model.provider, "model": model.model, "input": ["text", *model.input]}
    if model.context is not None:
        facts["context_window"] = model.context
    if model.output is not None:
        facts["max_output_tokens"] = model.output
    if model.efforts:
        facts["reasoning_efforts"] = list(model.efforts)
    return {"id": id, "object": "model", "created": _CREATED, "owned_by": model.provider, "isthmus": facts}
