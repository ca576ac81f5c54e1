"""The first page: what runs here, how to try it, who can be asked, and what was asked last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isthmus.config.keys_shown import key_words
from isthmus.server.readiness import OK
from isthmus.server.ui.requests import latest

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look


async def home_view(look: Look) -> dict[str, Any]:
    directory = look.gateway.directory
    found = await look.readiness.ask()
    reading = look.reading
    providers = [
        {
            "name": name,
            "title": served.provider.title,
            "word": found.providers.get(name, ""),
            "well": found.providers.get(name) == OK,
            "key": key_words(reading, name) if reading is not None else "",
        }
        for name, served in directory.served.items()
    ]
    return {
        "default": directory.default or "",
        "demo": (directory.default or "").startswith("demo/"),
        "providers": providers,
        "store": found.store,
        "status": found.status,
        "running": len(look.gateway.runs),
        "origin": look.origin,
        "keys": look.options.keys.needed,
        "latest": await latest(look, 8),
        "aliases": directory.meanings,
    }
