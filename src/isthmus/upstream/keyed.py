"""A provider for which some callers have keys of their own: each goes their own way to it.

In: a request, and on whose behalf. Out: what the way answers that is theirs: the one of their key, else of their team,
else everybody's. Worth knowing: ways share nothing but the address. A spent key rests for those alone whose it is, a
crowd waits for connections among its own, and so does whatever the provider caches by key.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, cast

from isthmus.bridge.deltas import Delta
from isthmus.bridge.types.plan import Plan
from isthmus.ports import OURS, Again, Backend, Behalf, Drawer, Embedder
from isthmus.protocol.json import JsonObject

if TYPE_CHECKING:  # loaded when the first vectors, or images, are asked for
    from isthmus.bridge.embeddings.answer import Embedded
    from isthmus.bridge.embeddings.plan import EmbeddingPlan
    from isthmus.bridge.images.answer import Drawn, Partial
    from isthmus.bridge.images.plan import ImagePlan


class KeyedBackend:
    def __init__(self, ways: Mapping[str, Backend]) -> None:
        """By caller: `team:NAME`, the id of a key, or nothing for everybody else."""
        self._ways = ways

    def key_for(self, behalf: Behalf) -> str:
        """Under which name their key stands; empty: they have none of their own."""
        if behalf.key and behalf.key in self._ways:
            return behalf.key
        team = f"team:{behalf.team}"
        return team if behalf.team and team in self._ways else ""

    def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        return self._way(behalf).send(plan, body, behalf)

    async def embed(self, plan: EmbeddingPlan, trail: list[Again] | None = None, behalf: Behalf = OURS) -> Embedded:
        """Of a way that can."""
        return await cast(Embedder, self._way(behalf)).embed(plan, trail, behalf)

    async def draw(
        self,
        plan: ImagePlan,
        tell: Callable[[Partial], None],
        trail: list[Again] | None = None,
        behalf: Behalf = OURS,
    ) -> Drawn:
        """Likewise."""
        return await cast(Drawer, self._way(behalf)).draw(plan, tell, trail, behalf)

    async def ready(self) -> str | None:
        """Whether anybody can be served; where not, what everybody's way says."""
        words = await asyncio.gather(*(way.ready() for way in self._ways.values()))
        return None if None in words else words[0]

    async def aclose(self) -> None:
        for way in self._ways.values():
            await way.aclose()

    def _way(self, behalf: Behalf) -> Backend:
        return self._ways[self.key_for(behalf)]
