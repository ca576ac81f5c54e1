"""`/v1/models`: OpenAI's list and, beside it, the catalogue that Codex reads (`models`)."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive, Scope, Send

from isthmus.errors import RequestRefused
from isthmus.gateway.gateway import Gateway
from isthmus.protocol.json import JsonObject
from isthmus.providers.catalog import KnownModel, describe_model, known_models
from isthmus.server.http import send_json

_CREATED: Final = 1_767_225_600
"""A model list has no honest creation time; clients only want a number."""
_DEFAULT_CONTEXT: Final = 128_000


class ModelsApi:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        listed = self._models()
        body: JsonObject = {
            "object": "list",
            "data": [_openai_shape(id, model) for id, model in listed.items()],
            "models": [_codex_shape(id, model, rank) for rank, (id, model) in enumerate(listed.items())],
        }
        await send_json(send, 200, body)

    async def retrieve(self, scope: Scope, receive: Receive, send: Send) -> None:
        id = scope["path_params"]["id"]
        model = self._models().get(id)
        if model is None:
            candidate = self._gateway.directory.find(id)
            if "/" not in id:
                raise RequestRefused(f"no model `{id}`; `/v1/models` lists what there is", code="model_not_found")
            model = describe_model(candidate.served.provider, candidate.target.model)
        await send_json(send, 200, _openai_shape(id, model))

    def _models(self) -> dict[str, KnownModel]:
        """Aliases first, then every model that the providers' files name."""
        directory = self._gateway.directory
        listed: dict[str, KnownModel] = {}
        for alias in directory.aliases:
            if alias != "*":
                candidate = directory.find(alias)
                listed[alias] = describe_model(candidate.served.provider, candidate.target.model)
        for name, served in directory.served.items():
            for model in known_models([served.provider]):
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


def _codex_shape(id: str, model: KnownModel, rank: int) -> JsonObject:
    """What Codex needs to know: window, efforts, freeform patches, plain tools."""
    efforts = [effort for effort in model.efforts if effort != "none"]
    return {
        "slug": id,
        "display_name": model.title or id,
        "description": f"{model.model} at {model.provider}, through Isthmus",
        "default_reasoning_level": efforts[len(efforts) // 2] if efforts else None,
        "supported_reasoning_levels": [{"effort": effort, "description": effort} for effort in efforts],
        "shell_type": "shell_command",
        "visibility": "list",
        "supported_in_api": True,
        "priority": rank,
        "support_verbosity": False,
        "apply_patch_tool_type": "freeform",
        "supports_parallel_tool_calls": True,
        "supports_reasoning_summaries": model.thinks,
        "context_window": model.context or _DEFAULT_CONTEXT,
        "truncation_policy": {"mode": "bytes", "limit": 10_000},
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"] if "image" in model.input else ["text"],
        "base_instructions": "",
    }
