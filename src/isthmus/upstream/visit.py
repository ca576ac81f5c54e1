"""A visit to an address that somebody else has named: an image that a provider only points to.

In: a URL. Out: what is there, whole and within a size, or `UpstreamFailed`. Worth knowing: nobody here has chosen the
address, so it is https at its usual port, at a public place, and nothing of ours goes along: no key, no cookie, no
proxy. The name is looked at when it is called, and what was looked at is what is connected to. A redirect is one more
address that somebody else has named: it is looked at in the same way, a few times, and then it is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urljoin

from isthmus.addresses import fault_of_visit, is_public
from isthmus.scrub import Secret
from isthmus.upstream.endpoint import Endpoint, Patience
from isthmus.upstream.guard import Lookup
from isthmus.upstream.wire import Incoming, Wire

USER_AGENT: Final = "isthmus (visits)"
MAX_HOPS: Final = 3
_MOVED: Final = (301, 302, 303, 307, 308)


class Visitor:
    def __init__(
        self,
        called: str,
        *,
        timeout: float,
        at_once: int,
        more_secrets: Sequence[Secret] = (),
        lookup: Lookup | None = None,
    ) -> None:
        """`called`: what sentences call the places that are visited."""
        endpoint = Endpoint(
            provider=called,
            called=called,
            url="",
            headers={"user-agent": USER_AGENT, "accept-encoding": "identity"},
            trust_env=False,
            max_connections=at_once,
            patience=Patience(connect=timeout, first_byte=timeout, idle=timeout),
            allows=is_public,
            lookup=lookup,
        )
        self._wire = Wire(endpoint, more_secrets)

    async def fetch(self, url: str, *, most: int) -> bytes:
        """`most`: bytes that it may have."""
        for _ in range(MAX_HOPS + 1):
            if (fault := fault_of_visit(url)) is not None:
                raise self._wire.failed(f"cannot be fetched: its address {fault}", "upstream_unreachable")
            incoming = await self._wire.send(None, method="GET", url=url)
            try:
                if incoming.status not in _MOVED:
                    return await self._read(incoming, most)
                url = urljoin(url, incoming.headers.get("location", ""))
            finally:
                incoming.close()
        raise self._wire.failed(f"cannot be fetched: it sends us on more than {MAX_HOPS} times", "upstream_unreachable")

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def _read(self, incoming: Incoming, most: int) -> bytes:
        if not incoming.ok:
            raise self._wire.failed(f"cannot be fetched: HTTP {incoming.status}", "upstream_unreachable")
        data = await incoming.within(most)
        if data is None:
            raise self._wire.failed(f"is longer than {most:,} bytes", "upstream_malformed")
        return data
