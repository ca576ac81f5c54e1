"""Who carries requests: the one place that decides it, once for each endpoint.

Our own client (`lean`) knows every way but those that lead through a proxy; these are aiohttp's (`proxied`), which is
loaded for them alone. The wire sees what both have in common, and the same questions are asked of both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Protocol

from isthmus.upstream.lean.client import LeanClient

if TYPE_CHECKING:
    from isthmus.upstream.endpoint import Endpoint


class Answer(Protocol):
    """An answer whose head is there; it is read by one reader, piece by piece."""

    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def kind(self) -> str:
        """The media type, without what follows it."""
        ...

    @property
    def over(self) -> bool:
        """Whether all of it was taken."""
        ...

    def take(self) -> bytes:
        """What has come, without a wait; empty where nothing has. Raises what ended it, behind the last of it."""
        ...

    def news(self) -> Awaitable[None] | None:
        """Done when there may be something to take; `None`: there is, or nothing more will come."""
        ...

    def fail(self, error: Exception) -> None:
        """Its reader is told so."""
        ...

    def close(self) -> None:
        """Of one that was left early nothing more may arrive; the connection of one that ended is free already."""
        ...


class Client(Protocol):
    """One pool of connections to wherever an endpoint leads."""

    def spell(self, method: str, url: str, other: str) -> str:
        """The address as it will be asked for: whoever signs a request signs this."""
        ...

    async def ask(
        self, method: str, url: str, data: bytes | None, other: str, more: Mapping[str, str] | None
    ) -> Answer:
        """`other`: under which name the headers are known; `more`: those of this request alone. Raises `Trouble`, or
        `Stale` where nothing came on a kept connection."""
        ...

    async def aclose(self) -> None:
        """All its connections are closed; the next request opens new ones."""
        ...


def open_client(endpoint: Endpoint, headers: Mapping[str, Mapping[str, str]], proxy: str | None) -> Client:
    """`headers`: of every request, for each of the endpoint's addresses."""
    if proxy is None:
        return LeanClient(endpoint, headers)
    from isthmus.upstream.proxied.client import ProxiedClient

    return ProxiedClient(endpoint, headers, proxy)
