"""What is done at a terminal to what gateways use is noted in their store, as what is done over HTTP is."""

from __future__ import annotations

import asyncio
import getpass

from isthmus.access.keeper import Keeper
from isthmus.cli.store_options import server_limits
from isthmus.config.schema import Store as StoreSettings
from isthmus.ports.keys import KeyBook
from isthmus.store.open import open_store


def keeper_of(store: KeyBook, settings: StoreSettings) -> Keeper:
    """Notes who sits at the terminal."""
    return Keeper(store, "cli", about=_person(), most=settings.audit_entries)


def note_afterwards(settings: StoreSettings, action: str, target: str = "", **details: str) -> None:
    """For what has to have the store alone while it is done."""

    async def main() -> None:
        opened = open_store(settings.url, durability=settings.durability, server=server_limits(settings))
        try:
            await keeper_of(opened, settings).note(action, target, **details)
        finally:
            await opened.aclose()

    asyncio.run(main())


def _person() -> dict[str, str]:
    try:
        return {"user": getpass.getuser()}
    except (OSError, KeyError):  # a container whose user has no name
        return {}
