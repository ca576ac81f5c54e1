"""The store that keys are kept in, for commands that look after them, also while gateways run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from isthmus.access.keeper import Keeper
from isthmus.cli.deeds import keeper_of
from isthmus.cli.store_options import server_limits, store_settings
from isthmus.errors import ConfigError
from isthmus.ports import Store
from isthmus.store.envelope_key import envelope_key
from isthmus.store.open import database_path, open_store

T = TypeVar("T")


def with_keeper(
    config: Path | None, url: str | None, use: Callable[[Keeper, Store], Awaitable[T]], *, make: bool = False
) -> T:
    """What `use` makes of the keys. `make`: a store that is not there yet is made, as a gateway would."""
    settings = store_settings(config, url)
    if settings.url.startswith("memory:"):
        raise ConfigError(
            "a `memory:` store lives and dies with its gateway: name a file with `store.url`, or ask the gateway "
            "itself, at `/v1/isthmus/keys`"
        )
    path = database_path(settings.url)
    if path is not None and (not path.is_file() or not path.stat().st_size):
        if not make:
            words = f"there is no store at `{path}`, and no key; make one with `isthmus keys create NAME`"
            raise ConfigError(words, param="store.url")
        envelope_key(path)

    async def main() -> T:
        opened = open_store(settings.url, durability=settings.durability, server=server_limits(settings))
        try:
            return await use(keeper_of(opened, settings), opened)
        finally:
            await opened.aclose()

    return asyncio.run(main())
