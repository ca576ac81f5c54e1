"""The models that a Codex login offers, as the gateway lists them.

In: the entries of `model/list`. Out: `KnownModel`s; what an entry does not say comes from the provider file.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final, Protocol, get_args

from isthmus.bridge.capabilities import EFFORTS, Modality
from isthmus.errors import IsthmusError
from isthmus.protocol.json import JsonObject
from isthmus.providers import Provider
from isthmus.providers.catalog import KnownModel, describe_model

PATIENCE: Final = 3.0
"""Seconds to wait for a process that is just starting; a list of models is not worth more."""


class Lister(Protocol):
    async def models(self) -> list[JsonObject]: ...


async def read_models(backend: Lister, provider: Provider) -> list[KnownModel]:
    """What the program lists; nothing, while it cannot be asked."""
    try:
        async with asyncio.timeout(PATIENCE):
            listed = await backend.models()
    except (TimeoutError, IsthmusError):
        return []
    return [describe_entry(entry, provider) for entry in listed if isinstance(entry.get("id"), str)]


def describe_entry(entry: JsonObject, provider: Provider) -> KnownModel:
    known = describe_model(provider, entry["id"])
    told = {str(option.get("reasoningEffort")) for option in _tables(entry.get("supportedReasoningEfforts"))}
    seen = entry.get("inputModalities")
    return replace(
        known,
        title=str(entry.get("displayName") or known.title),
        efforts=tuple(effort for effort in EFFORTS if effort in told) or known.efforts,
        input=tuple(kind for kind in get_args(Modality) if kind in seen) if isinstance(seen, list) else known.input,
    )


def _tables(value: Any) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
