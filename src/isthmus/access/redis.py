"""Limits that are counted in Redis, for all processes and machines together.

Windows are those of the `limits` library. A place is an entry of a sorted set with the time at which it is free again:
whoever has it says every few seconds that it is still there, so that a process that dies gives its places back. Redis
that does not answer in time is away for a moment: then this process counts alone, or nobody is let through, as the
operator wishes. Nothing here waits longer than `timeout`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Literal, TypeVar, cast

from isthmus.access.counters import CountersHere, Pair
from isthmus.access.windows import Counted, Window
from isthmus.errors import ConfigError
from isthmus.log import tell

log = logging.getLogger("isthmus.limits")

_T = TypeVar("_T")
LEASE: Final = 30.0
"""Seconds after which a place whose process is silent is free again."""
_AWAY: Final = 1.0
"""Seconds for which Redis is not asked after it did not answer."""
_CONNECTIONS: Final = 64
_ENTER: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
_STAY: Final = """
local time = redis.call('TIME')
local until_ = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
for index = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', until_, ARGV[index]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""

Down = Literal["allow", "refuse"]


class CountersInRedis:
    def __init__(
        self,
        url: str,
        *,
        down: Down = "allow",
        timeout: float = 0.5,
        prefix: str = "isthmus",
        now: Callable[[], float] = monotonic,
    ) -> None:
        try:
            import redis.asyncio as redis
            from limits.aio.storage import RedisStorage
        except ImportError as error:
            words = "`limits.redis` needs the packages of an extra: install `isthmus[redis]`"
            raise ConfigError(words) from error
        self.errors: tuple[type[Exception], ...] = (redis.RedisError, OSError, TimeoutError)
        self._down, self._now = down, now
        pool = redis.BlockingConnectionPool.from_url(
            url, socket_timeout=timeout, socket_connect_timeout=timeout, timeout=timeout, max_connections=_CONNECTIONS
        )
        self._client = redis.Redis(connection_pool=pool)
        storage = RedisStorage(
            "async+redis://", implementation="redispy", key_prefix=prefix, connection_pool=cast(Any, pool)
        )
        within = _Within(timeout)
        self.places = RedisPlaces(self._client, within, prefix)
        self._shared = Pair(RedisWindows(Counted(storage), within), self.places)
        self._alone: CountersHere | None = None
        self._away_until = float("-inf")

    def now(self) -> Pair:
        if self._now() >= self._away_until:
            return self._shared
        if self._down == "refuse":
            words = "the limits of this gateway cannot be counted: its Redis (`limits.redis`) does not answer"
            raise ConfigError(f"{words}; try again in a moment", code="limits_unavailable")
        self._alone = self._alone or CountersHere()
        return self._alone.now()

    def failed(self, error: Exception) -> None:
        if self._now() >= self._away_until:
            done = "this process counts alone" if self._down == "allow" else "nobody is let through"
            tell(log, "error", "limits.redis_away", reason=f"{type(error).__name__}: {error}", done=done)
        self._away_until = self._now() + _AWAY

    async def aclose(self) -> None:
        await self.places.aclose()
        with suppress(*self.errors):
            await self._client.aclose(close_connection_pool=True)


class _Within:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def __call__(self, asking: Awaitable[_T]) -> _T:
        async with asyncio.timeout(self._seconds):
            return await asking


class RedisWindows:
    """`Windows`, each asking within its time."""

    def __init__(self, counted: Counted, within: _Within) -> None:
        self._counted, self._within = counted, within

    async def take(self, name: str, amount: int, most: int) -> bool:
        return await self._within(self._counted.take(name, amount, most))

    async def add(self, name: str, amount: int) -> None:
        await self._within(self._counted.add(name, amount))

    async def look(self, name: str) -> Window:
        return await self._within(self._counted.look(name))


class RedisPlaces:
    def __init__(self, client: Any, within: _Within, prefix: str, lease: float = LEASE) -> None:
        self._client, self._within, self._prefix, self._lease = client, within, prefix, lease
        self._enter, self._stay = client.register_script(_ENTER), client.register_script(_STAY)
        self._mine: dict[str, set[str]] = {}
        self._staying: asyncio.Task[None] | None = None

    async def enter(self, name: str, id: str, most: int) -> bool:
        milliseconds = int(self._lease * 1000)
        if not await self._within(self._enter(keys=[self._key(name)], args=[id, most, milliseconds])):
            return False
        self._mine.setdefault(name, set()).add(id)
        if self._staying is None or self._staying.done():
            self._staying = asyncio.create_task(self._stay_there(), name="keep places")
        return True

    async def leave(self, name: str, id: str) -> None:
        mine = self._mine.get(name, set())
        mine.discard(id)
        if not mine:
            self._mine.pop(name, None)
        await self._within(self._client.zrem(self._key(name), id))

    async def stay(self) -> None:
        """Say that all places of this process are still taken."""
        for name, ids in list(self._mine.items()):
            await self._within(self._stay(keys=[self._key(name)], args=[int(self._lease * 1000), *ids]))

    async def aclose(self) -> None:
        if self._staying is not None:
            self._staying.cancel()
            await asyncio.wait([self._staying])

    async def _stay_there(self) -> None:
        while self._mine:
            await asyncio.sleep(self._lease / 3)
            try:
                await self.stay()
            except Exception as error:  # whatever it is: the next time may do better, and until then they are held
                tell(log, "warning", "limits.places_not_kept", reason=f"{type(error).__name__}: {error}")

    def _key(self, name: str) -> str:
        return f"{self._prefix}:places:{name}"
