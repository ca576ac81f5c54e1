"""Who does work for the gateway: upstreams that answer, and workers that check where it stops nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import msgspec

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.deltas import Delta
    from isthmus.bridge.embeddings.answer import Embedded
    from isthmus.bridge.embeddings.plan import EmbeddingPlan
    from isthmus.bridge.images.answer import Drawn, Partial
    from isthmus.bridge.images.plan import ImagePlan
    from isthmus.bridge.jobs import Job, Result
    from isthmus.bridge.types.plan import OutputContract, Plan
    from isthmus.errors import UpstreamFailed
    from isthmus.protocol.json import JsonObject


class Behalf(msgspec.Struct, frozen=True):
    """For whom an upstream is asked: whoever waits in its queue waits among their own."""

    owner: str = ""
    key: str = ""
    """The id of the caller's key."""
    team: str = ""


OURS = Behalf()
"""Nobody in particular."""


class Backend(Protocol):
    """One upstream. Entering `send` means that it has accepted; leaving it closes the connection at once."""

    def send(
        self, plan: Plan, body: JsonObject, behalf: Behalf = OURS
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Delta]]]:
        """Raises `UpstreamFailed` on entering when it refuses, and from the iterator when it breaks off."""

    async def ready(self) -> str | None:
        """What keeps it from serving, in words; `None` when nothing is known to."""

    async def aclose(self) -> None: ...


class Embedder(Protocol):
    """An upstream that makes vectors of texts."""

    async def embed(self, plan: EmbeddingPlan, trail: list[Again] | None = None, behalf: Behalf = OURS) -> Embedded:
        """Raises `UpstreamFailed`. `trail` takes what happens on the way."""


class Drawer(Protocol):
    """An upstream that draws images."""

    async def draw(
        self,
        plan: ImagePlan,
        tell: Callable[[Partial], None],
        trail: list[Again] | None = None,
        behalf: Behalf = OURS,
    ) -> Drawn:
        """Raises `UpstreamFailed`. `tell` hears of images that are still being drawn."""


class Visits(Protocol):
    """Fetches what somebody else has named, from public places only."""

    async def fetch(self, url: str, *, most: int) -> bytes:
        """Raises `UpstreamFailed`."""

    async def aclose(self) -> None: ...


def limits_of(sending: object) -> Mapping[str, str]:
    """What an upstream said of its rate limits when it accepted, as headers (`x-ratelimit-…`). Nothing, where it said
    nothing, or is none that speaks HTTP: not every `send` knows of `limits`."""
    found: Mapping[str, str] | None = getattr(sending, "limits", None)
    return found or {}


def key_for(backend: object, behalf: Behalf) -> str:
    """Under which name the key stands that it shows for them, where callers have keys of their own; of one that knows,
    like `limits_of`."""
    told: Callable[[Behalf], str] | None = getattr(backend, "key_for", None)
    return "" if told is None else told(behalf)


class Again(msgspec.Struct, frozen=True):
    """Below one asking: the provider failed in passing, and was asked once more."""

    failure: UpstreamFailed
    wait: float = 0.0
    elsewhere: bool = False
    """Whether another key or place of it was asked."""


def trail_of(sending: object) -> Sequence[Again]:
    """What happened until somebody accepted, or nobody did; like `limits_of`, of a `send` that knows."""
    found: Sequence[Again] | None = getattr(sending, "trail", None)
    return found or ()


class Workers(Protocol):
    """Processes of our own."""

    async def run(self, kind: str, payload: bytes) -> bytes:
        """Have a job done. Raises `WorkNotDone`: it met a limit, or none was free in time."""


class Checker(Protocol):
    """Checks whose length a client decides. Nothing here blocks the loop or waits without end."""

    async def admit(self, contract: OutputContract) -> None:
        """Whether answers can be checked against the contract's schema.

        Raises `RequestRefused` if not, `WorkNotDone` if there is no room to find out, or a bug of ours in the way.
        """

    async def check(self, job: Job) -> Result:
        """The result of a job; one that could not be done says so in its result."""
