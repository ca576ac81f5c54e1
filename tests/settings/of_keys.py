"""Proofs for what is said of keys and deeds."""

from __future__ import annotations

import asyncio

from isthmus.errors import StoreUnavailable
from keyed import deed, secret_of, stored_key
from settings.proving import Scene, proves


@proves("store.audit_entries", "2")
async def so_many_deeds_are_remembered(scene: Scene) -> None:
    async with scene.served({"server.admin_key": '"chief"'}) as server:
        for name in ("a", "b", "c"):
            assert await server.status("POST", "/v1/isthmus/keys", {"name": name}, x_api_key="chief") == 200
        assert [each.details["name"] for each in await server.gateway.store.deeds()] == ["c", "b"]


@proves("server.stale_keys", "0.5")
async def so_long_they_are_believed(scene: Scene) -> None:
    async with scene.served() as server:
        store = server.gateway.store
        await store.add_key(stored_key("ann"), deed())
        shown = {"authorization": f"Bearer {secret_of('ann')}"}
        for _ in range(100):
            if await server.status("GET", "/v1/models") == 401:
                break
            await asyncio.sleep(0.05)
        assert await server.status("GET", "/v1/models", **shown) == 200

        async def away() -> int:
            raise StoreUnavailable("it was deleted")

        store.keys_mark = away  # type: ignore[method-assign]
        for _ in range(40):
            if (found := await server.status("GET", "/v1/models", **shown)) != 200:
                break
            await asyncio.sleep(0.05)
        assert found == 503
