"""Rates and places: all rules of a request have room for it, or it is refused and counts nowhere.

In: rules, and about how many tokens it will take. Out: `Taken`, to be ended with the tokens that it took; or a 429 that
says which limit was met, whose it is, and when to ask again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Final

from isthmus.access.counters import Counters, Pair
from isthmus.access.rules import Rule
from isthmus.access.standing import Standing, limit_headers
from isthmus.errors import RequestRefused

_PLACE_WAIT: Final = 1.0
"""Seconds after which a place may well be free: nobody knows."""
_SHORTEST: Final = 0.1


@dataclass(slots=True)
class Taken:
    """What one request has taken of its limits."""

    id: str
    pair: Pair
    requests: list[str] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)
    """Windows of tokens, and what was counted in each beforehand."""
    places: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)

    async def end(self, tokens: int) -> None:
        """It is over, and so many it was in the end."""
        for name in self.places:
            await self.pair.places.leave(name, self.id)
        for name, estimate in self.counted.items():
            await self.pair.windows.add(name, tokens - estimate)

    async def undo(self) -> None:
        """It was never sent: nothing of it counts."""
        for name in self.requests:
            await self.pair.windows.add(name, -1)
        await self.end(0)


class Limiter:
    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self.failures = 0
        """How often it could not be counted where it should be."""

    async def take(self, rules: Sequence[Rule], *, id: str, tokens: int, streams: bool) -> Taken:
        """Raises `RequestRefused`."""
        try:
            return await self._take(self._counters.now(), rules, id, tokens, streams)
        except self._counters.errors as error:
            self._failed(error)
            return await self._take(self._counters.now(), rules, id, tokens, streams)

    async def end(self, taken: Taken, tokens: int) -> None:
        """Neither counts for ever where Redis is away: windows are forgotten in minutes, places after a while."""
        await self._quietly(taken.end(tokens))

    async def undo(self, taken: Taken) -> None:
        await self._quietly(taken.undo())

    async def aclose(self) -> None:
        await self._counters.aclose()

    async def _quietly(self, ending: Awaitable[None]) -> None:
        try:
            await ending
        except self._counters.errors as error:
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self._counters.failed(error)

    async def _take(self, pair: Pair, rules: Sequence[Rule], id: str, tokens: int, streams: bool) -> Taken:
        taken = Taken(id, pair)
        try:
            for rule in rules:
                await self._take_places(taken, rule, streams)
            for rule in rules:
                await self._take_rates(taken, rule, tokens)
            taken.headers = limit_headers(await _standings(pair, rules))
        except BaseException:
            await self._quietly(taken.undo())
            raise
        return taken

    async def _take_places(self, taken: Taken, rule: Rule, streams: bool) -> None:
        rates = rule.rates
        wanted = [("requests", rates.concurrent_requests)]
        if streams:
            wanted.append(("streams", rates.concurrent_streams))
        for what, most in wanted:
            if not most:
                continue
            name = f"{rule.name}:{what}"
            if not await taken.pair.places.enter(name, taken.id, most):
                words = f"{rule.whose} may have {most:,} {what} at the same time; wait until one has ended"
                raise await _refusal(taken, rule, words, _PLACE_WAIT)
            taken.places.append(name)

    async def _take_rates(self, taken: Taken, rule: Rule, tokens: int) -> None:
        windows, rates = taken.pair.windows, rule.rates
        if most := rates.requests_per_minute:
            name = f"{rule.name}:rpm"
            if not await windows.take(name, 1, most):
                wait = (await windows.look(name)).wait(1, most)
                words = f"{rule.whose} may send {most:,} requests per minute"
                raise await _refusal(taken, rule, words, wait)
            taken.requests.append(name)
        if most := rates.tokens_per_minute:
            name = f"{rule.name}:tpm"
            # What alone is more than a whole minute's must be able to pass when nothing else does.
            amount = min(tokens, most)
            if not await windows.take(name, amount, most):
                window = await windows.look(name)
                words = (
                    f"{rule.whose} may use {most:,} tokens per minute: {window.used:,} are used, and this request "
                    f"takes about {tokens:,}"
                )
                raise await _refusal(taken, rule, words, window.wait(amount, most))
            taken.counted[name] = amount


async def _refusal(taken: Taken, rule: Rule, words: str, wait: float) -> RequestRefused:
    wait = max(wait, _SHORTEST)
    return RequestRefused(
        f"{words}; try again in {wait:.1f}s, or ask your operator for more",
        code="rate_limit_exceeded",
        retry_after=wait,
        metadata={"limits": limit_headers(await _standings(taken.pair, [rule]))},
    )


async def _standings(pair: Pair, rules: Sequence[Rule]) -> list[Standing]:
    found = []
    for rule in rules:
        rates = rule.rates
        for what, short, most in (
            ("requests", "rpm", rates.requests_per_minute),
            ("tokens", "tpm", rates.tokens_per_minute),
        ):
            if most:
                window = await pair.windows.look(f"{rule.name}:{short}")
                found.append(Standing(what, most, max(0, most - window.used), window.reset()))
    return found
