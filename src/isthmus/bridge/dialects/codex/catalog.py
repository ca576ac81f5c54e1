"""Codex's model catalog, made plain: models that call tools directly instead of through its own machinery.

In: the catalog as `codex debug models` prints it. Out: the same models without code mode, lite requests and
built-in tools. Most catalog models otherwise hide client tools inside one JavaScript tool, where calls have
neither their own ids nor verbatim arguments. The binary reads the result at start (`model_catalog_json`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from isthmus.protocol.json import JsonObject

PLAIN_FIELDS: Final[JsonObject] = {
    "tool_mode": None,
    "use_responses_lite": False,
    "apply_patch_tool_type": None,
    "supports_search_tool": False,
    "multi_agent_version": None,
    "experimental_supported_tools": [],
    "default_verbosity": None,
}


def plain_catalog(catalog: Mapping[str, Any]) -> JsonObject:
    """Every model keeps its facts (context, efforts, modalities); only Codex's own tools and terseness go."""
    models = catalog.get("models") or []
    return {**catalog, "models": [{**model, **PLAIN_FIELDS} for model in models]}
