"""A gateway somewhere else as a line: requests go out as they are, its events come back as they are.

In: a Responses request. Out: Responses events, the gateway's own diagnostics included. What a model costs is looked up
in the provider files here, by the names that the response gives.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Protocol

from isthmus.bridge.capabilities import Cost
from isthmus.client.line import Batch, ModelInfo
from isthmus.errors import ConfigError
from isthmus.protocol.json import JsonObject
from isthmus.providers import load_provider


class Gateway(Protocol):
    """The wire to a gateway."""

    def events(self, request: JsonObject) -> AsyncGenerator[Batch, None]: ...

    async def models(self) -> list[JsonObject]: ...

    async def aclose(self) -> None: ...


class RemoteLine:
    def __init__(self, name: str, gateway: Gateway, *, credential: str = "") -> None:
        self._name = name
        self._gateway = gateway
        self._credential = credential
        self._listed: dict[str, ModelInfo] = {}

    @property
    def provider(self) -> str:
        return self._name

    @property
    def credential(self) -> str:
        return self._credential

    def events(self, request: JsonObject) -> AsyncGenerator[Batch, None]:
        return self._gateway.events(request)

    def describe(self, model: str) -> ModelInfo:
        return self._listed.get(model) or ModelInfo(model, self._name, model, known=False)

    def cost(self, model: str, facts: Mapping[str, Any]) -> Cost | None:
        provider, answered = facts.get("provider"), facts.get("model")
        if not isinstance(provider, str) or not isinstance(answered, str):
            return None
        try:
            return load_provider(provider).capabilities(answered).cost
        except ConfigError:
            return None  # a provider that only the gateway knows

    async def models(self) -> list[ModelInfo]:
        self._listed = {entry["id"]: _info(entry) for entry in await self._gateway.models()}
        return list(self._listed.values())

    async def aclose(self) -> None:
        await self._gateway.aclose()


def _info(entry: JsonObject) -> ModelInfo:
    told = entry.get("isthmus")
    facts = told if isinstance(told, dict) else {}
    efforts = tuple(facts.get("reasoning_efforts") or ())
    return ModelInfo(
        name=entry["id"],
        provider=facts.get("provider") or entry.get("owned_by") or "",
        model=facts.get("model") or entry["id"],
        context_window=facts.get("context_window"),
        max_output_tokens=facts.get("max_output_tokens"),
        input=tuple(facts.get("input") or ("text",)),
        reasoning_efforts=efforts,
        thinks=bool(efforts),
        extra=facts,
    )
