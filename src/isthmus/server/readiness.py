"""Whether requests can be served, found out at most once per interval, however often it is asked.

Parts: this process (shutting down?), the store (is it writable? one small write says so, nothing is counted), each
provider (does it have its key, can it be reached, does its process live?), and each MCP server of the operator's own
(can it be reached?). The first question waits for the first
answer, which is bounded; all others get what was found last, and have it looked at again when it is old. What the store
knows of itself costs nothing and is asked every time. Nobody asks: nothing is done, and no provider hears of us.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from isthmus.errors import IsthmusError
from isthmus.gateway.gateway import Gateway

OK: Final = "ok"
PATIENCE: Final = 5.0
"""Seconds that a part has to say how it is."""
_STALE: Final = 3
"""Intervals after which nobody believes an old finding: the next one is waited for."""
_DEMO: Final = "demo"

Check = Callable[[], Awaitable[str | None]]
"""What keeps a part from serving, in words; `None`: nothing."""
Status = Literal["ready", "degraded", "not ready"]


@dataclass(frozen=True, slots=True)
class Found:
    store: str
    providers: Mapping[str, str]
    at: float
    """The loop's time."""
    mcp: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> Status:
        """Not ready without a store, and where not one provider can be asked: then every request fails. With one of
        several out of order, or an MCP server gone, there is work to do here, and the others do theirs. The demo is
        nobody's model: it counts only where it is the only one."""
        counted = {name: word for name, word in self.providers.items() if name != _DEMO} or self.providers
        if self.store != OK or all(word != OK for word in counted.values()):
            return "not ready"
        return "ready" if all(word == OK for word in (*counted.values(), *self.mcp.values())) else "degraded"


class Readiness:
    def __init__(
        self,
        store: Check,
        providers: Mapping[str, Check],
        *,
        mcp: Mapping[str, Check] | None = None,
        glance: Check | None = None,
        interval: float = 10.0,
    ) -> None:
        """`glance`: what the store can say of itself without doing anything."""
        self._store = store
        self._glance = glance
        self._providers = dict(providers)
        self._mcp = dict(mcp or {})
        self._interval = interval
        self._found: Found | None = None
        self._looking: asyncio.Task[Found] | None = None

    async def ask(self) -> Found:
        """What is so, or was a moment ago."""
        found, age = self._found, 0.0
        seen = OK if self._glance is None else await _word(self._glance)
        if found is not None and seen != OK:
            return replace(found, store=seen)
        if found is not None and found.store != OK and self._glance is not None:
            found = None  # it is said to be well again: see whether it is
        if found is not None:
            age = asyncio.get_running_loop().time() - found.at
            if age < self._interval:
                return found
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="look whether all is well")
        if found is not None and age < self._interval * _STALE:
            return found
        return await asyncio.shield(self._looking)

    async def aclose(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])

    async def _look(self) -> Found:
        store, providers, mcp = await asyncio.gather(_word(self._store), _words(self._providers), _words(self._mcp))
        found = Found(store, providers, asyncio.get_running_loop().time(), mcp)
        self._found = found
        return found


async def _words(checks: Mapping[str, Check]) -> dict[str, str]:
    said = await asyncio.gather(*(_word(check) for check in checks.values()))
    return dict(zip(checks, said, strict=True))


async def _word(check: Check) -> str:
    try:
        async with asyncio.timeout(PATIENCE):
            return await check() or OK
    except TimeoutError:
        return f"no answer within {PATIENCE:g} s"
    except IsthmusError as error:
        return error.message
    except Exception as error:  # whatever is wrong with it, it is not ready
        return f"{type(error).__name__}: {error}"


def readiness_of(gateway: Gateway, missing_keys: Mapping[str, str], interval: float) -> Readiness:
    """The checks of a gateway's own parts."""

    def provider(name: str) -> Check:
        async def check() -> str | None:
            return missing_keys.get(name) or await gateway.directory.served[name].backend.ready()

        return check

    async def glance() -> str | None:
        await gateway.store.check()
        return None

    async def store() -> str | None:
        await gateway.store.check()  # a small write may well succeed where nothing else does any more
        holder = f"{gateway.runs.holder}:ready"
        await gateway.store.claim(holder, holder=holder, seconds=PATIENCE)
        await gateway.store.release(holder, holder=holder)
        return None

    providers = {name: provider(name) for name in gateway.directory.served}
    return Readiness(store, providers, mcp=gateway.hosted.servers, glance=glance, interval=interval)
