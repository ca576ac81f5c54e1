"""What is known: providers and the origin of each fact, models, and the settings that are in force."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.config.keys_shown import key_words
from isthmus.config.render import shown_settings
from isthmus.errors import RequestRefused
from isthmus.gateway.directory import Served
from isthmus.providers.origins import origins_of
from isthmus.server.readiness import OK

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

MATRIX: Final[tuple[tuple[str, Callable[[ProviderCapabilities], bool]], ...]] = (
    ("Tools", lambda able: able.tools.max != 0 and "function" in able.tools.native),
    ("Forced choice", lambda able: "required" in able.tool_choice.supported),
    ("JSON schema", lambda able: "json_schema" in able.response_formats.supported),
    ("JSON mode", lambda able: "json_object" in able.response_formats.supported),
    ("Images", lambda able: "image" in able.messages.input),
    ("Effort", lambda able: able.reasoning.effort != "none"),
    ("Web search", lambda able: "web_search" in able.tools.native),
)
"""Columns of the table of providers, each with its question."""
_SEARCHES: Final = MATRIX[-1][0]
"""What we can do in place of a provider."""


async def providers_view(look: Look) -> dict[str, Any]:
    found = await look.readiness.ask()
    rows = [
        {
            "name": served.name,
            "title": served.provider.title,
            "dialect": served.capabilities(served.provider.default_model).dialect,
            "model": served.provider.default_model,
            "word": found.providers.get(served.name, ""),
            "well": found.providers.get(served.name) == OK,
            "key": key_words(look.reading, served.name) if look.reading is not None else "",
            "able": [_able(look, served, title, test) for title, test in MATRIX],
        }
        for served in look.gateway.directory.served.values()
    ]
    return {"rows": rows, "columns": [title for title, _ in MATRIX]}


def _able(look: Look, served: Served, title: str, test: Callable[[ProviderCapabilities], bool]) -> str:
    if test(served.capabilities(served.provider.default_model)):
        return "yes"
    searches = look.reading is not None and look.reading.config.search.backend
    return "here" if title == _SEARCHES and searches else "no"


async def provider_view(look: Look) -> dict[str, Any]:
    name = look.scope["path_params"]["id"]
    served = look.gateway.directory.served.get(name)
    if served is None:
        raise RequestRefused(f"there is no provider `{name[:80]}` here", code="not_found")
    model = look.asked.get("model") or served.provider.default_model
    capabilities = served.capabilities(model)
    values = msgspec.to_builtins(capabilities, order="deterministic")
    facts = [
        {"path": path, "value": _find(values, path), "origin": origin}
        for path, origin in origins_of(served.provider, model, time.time()).items()
    ]
    found = await look.readiness.ask()
    offered = await served.offered()
    return {
        "served": served,
        "model": model,
        "capabilities": capabilities,
        "facts": facts,
        "word": found.providers.get(name, ""),
        "well": found.providers.get(name) == OK,
        "key": key_words(look.reading, name) if look.reading is not None else "",
        "offered": offered[:200],
    }


async def models_view(look: Look) -> dict[str, Any]:
    listed = await look.gateway.offer.models(look.visitor.caller)
    wanted = look.asked.get("q", "").strip().lower()[:200]
    rows = [{"id": id, "offered": offered} for id, offered in listed.items() if wanted in id.lower()]
    return {"rows": rows[:1000], "total": len(rows), "q": wanted, "aliases": look.gateway.directory.meanings}


async def settings_view(look: Look) -> dict[str, Any]:
    if not look.visitor.operates:
        raise RequestRefused("settings are shown to the operator: show the admin key", code="operator_only")
    reading, tracing = look.reading, look.gateway.tracing
    return {
        "capturing": None if tracing is None else tracing.capturing(),
        "sections": shown_settings(reading) if reading is not None else {},
        "file": str(reading.path) if reading is not None and reading.path is not None else "",
    }


def _find(tree: Any, path: str) -> Any:
    for name in path.split("."):
        if not isinstance(tree, dict) or name not in tree:
            return None
        tree = tree[name]
    return tree
