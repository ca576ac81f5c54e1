"""Models as Codex wants to be told of them: for `GET /v1/models`, and for the catalogue file that it reads at start.

In: what is known about the models on offer. Out: entries in the shape of Codex's own catalogue. Worth knowing: one
entry that Codex cannot read makes it drop the whole catalogue, and an entry without instructions leaves the model
without any. `apply_patch` is always freeform, tools always travel in `tools` (no `use_responses_lite`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isthmus.bridge.resolve import ANY_NAME, resolve_model
from isthmus.protocol.json import JsonObject
from isthmus.providers.catalog import KnownModel, describe_model, known_models
from isthmus.providers.codex_instructions import INSTRUCTIONS
from isthmus.providers.load import Provider

DEFAULT_CONTEXT: Final = 128_000
"""For a model whose window nobody stated: small enough to be safe with today's models."""

_EFFORTS: Final[Mapping[str, str]] = {
    "none": "No thinking: the quickest answers",
    "minimal": "Hardly any thinking",
    "low": "Little thinking, quick answers",
    "medium": "A balance of speed and thought",
    "high": "Much thought, for hard problems",
    "xhigh": "Very much thought",
    "max": "All the thought that the model can give",
}


def offered_models(
    providers: Mapping[str, Provider], aliases: Mapping[str, str], default: str | None = None
) -> dict[str, KnownModel]:
    """Every model by the name a client uses: the default, then aliases, then what the providers' files name."""
    offered: dict[str, KnownModel] = {}
    for name in (default, *aliases):
        if name and name != ANY_NAME:
            offered.setdefault(name, describe_offered(name, providers, aliases, default))
    for name, provider in providers.items():
        for model in known_models([provider]):
            offered.setdefault(f"{name}/{model.model}", model)
    return offered


def describe_offered(
    name: str, providers: Mapping[str, Provider], aliases: Mapping[str, str], default: str | None = None
) -> KnownModel:
    """The model behind a name, listed or not; an unknown provider is refused as a request for it would be."""
    found = resolve_model(name, aliases, default, list(providers))
    return describe_model(providers[found.provider], found.model)


def codex_catalogue(models: Mapping[str, KnownModel]) -> JsonObject:
    """The file behind Codex's `model_catalog_json`; the first model is the one it prefers."""
    return {"models": [codex_model(slug, model, rank) for rank, (slug, model) in enumerate(models.items())]}


def codex_model(slug: str, model: KnownModel, rank: int) -> JsonObject:
    """One entry: window, efforts, freeform patches, plain tools, instructions."""
    window = model.context or DEFAULT_CONTEXT
    return {
        "slug": slug,
        "display_name": model.title or slug,
        "description": f"{model.model} at {model.provider}, through Isthmus",
        "default_reasoning_level": _usual_effort(model.efforts),
        "supported_reasoning_levels": [
            {"effort": effort, "description": _EFFORTS.get(effort, effort)} for effort in model.efforts
        ],
        # Chat models show their thinking itself; Codex displays it where it would display a summary.
        "supports_reasoning_summaries": model.thinks,
        "default_reasoning_summary": "auto" if model.thinks else "none",
        "support_verbosity": False,
        "shell_type": "unified_exec",
        "apply_patch_tool_type": "freeform",
        "use_responses_lite": False,
        "supports_parallel_tool_calls": True,
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"] if "image" in model.input else ["text"],
        "context_window": window,
        "max_context_window": window,
        "effective_context_window_percent": _usable_percent(window, model.output),
        "truncation_policy": {"mode": "tokens", "limit": min(10_000, window // 12)},
        "visibility": "list",
        "supported_in_api": True,
        "priority": rank,
        "base_instructions": INSTRUCTIONS,
    }


def _usual_effort(efforts: tuple[str, ...]) -> str | None:
    """`medium` where it exists, else the middle of those that think."""
    thinking = [effort for effort in efforts if effort != "none"]
    if "medium" in thinking:
        return "medium"
    return thinking[len(thinking) // 2] if thinking else None


def _usable_percent(window: int, output: int | None) -> int:
    """How much of the window the conversation may fill before Codex compacts it: the answer needs room too."""
    return 95 if output is None else max(50, min(95, 100 - round(100 * output / window)))
