"""The ways to the providers, as configurations follow each other: what did not change goes on as it is.

A provider whose settings, file and keys are those of before keeps its connections, its queue, what is known of its
places, and its process if it has one. One that changed is opened anew; the old one is closed when the last gateway that
uses it is.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from isthmus.bridge.limits import AnswerLimits, take_limits
from isthmus.conduct.aside import Aside
from isthmus.config.schema import Config, ProviderConfig
from isthmus.config.secrets import configured_secrets
from isthmus.gateway.directory import Served
from isthmus.ports import Workers
from isthmus.providers import load_provider
from isthmus.upstream.breaker import FAILURES
from isthmus.upstream.endpoint import MAX_QUEUED
from isthmus.wiring_providers import serve_provider


@dataclass(eq=False, slots=True)
class Way:
    """One provider that was opened."""

    made_of: tuple[Any, ...]
    served: Served
    stack: AsyncExitStack
    users: int = 0
    """Gateways that it is part of."""


class Ways:
    def __init__(self) -> None:
        self._open: dict[str, Way] = {}
        """Those of the last configuration."""

    async def open(self, config: Config, workers: Workers, aside: Aside) -> dict[str, Way]:
        """All that it names, to be left again (`leave`). Where one cannot be opened, nothing has changed."""
        found: dict[str, Way] = {}
        try:
            for name, settings in config.providers.items():
                made_of, before = _made_of(name, settings, config), self._open.get(name)
                way = before if before is not None and before.made_of == made_of else None
                found[name] = way or await _open_way(name, settings, config, workers, aside, made_of)
                found[name].users += 1
        except BaseException:
            await self.leave(found)
            raise
        return found

    def keep(self, ways: dict[str, Way]) -> None:
        """These are the ones that the next configuration is held against."""
        self._open = ways

    async def leave(self, ways: dict[str, Way]) -> None:
        for way in ways.values():
            way.users -= 1
            if not way.users:
                await way.stack.aclose()


async def _open_way(
    name: str, settings: ProviderConfig, config: Config, workers: Workers, aside: Aside, made_of: tuple[Any, ...]
) -> Way:
    stack = AsyncExitStack()
    try:
        served = await serve_provider(name, _as_gateway(settings), config, stack, workers, aside)
    except BaseException:
        await stack.aclose()
        raise
    stack.push_async_callback(served.backend.aclose)
    return Way(made_of, served, stack)


def _made_of(name: str, settings: ProviderConfig, config: Config) -> tuple[Any, ...]:
    """All that `serve_provider` looks at."""
    folders = [Path(folder) for folder in config.provider_folders]
    provider = load_provider(
        settings.uses or name,
        folders,
        models=settings.models,
        place=f"providers.{name} in the configuration",
        dialect=settings.dialect,
    )
    limits = take_limits(AnswerLimits, config.limits)
    teams = {name: team.upstream_keys for name, team in config.teams.items()}
    return settings, provider, limits, teams, config.models.listed, tuple(configured_secrets(config))


def _as_gateway(settings: ProviderConfig) -> ProviderConfig:
    """A gateway's callers do not know of each other: who would wait behind too many others, or for somebody who is out
    of order, is told so at once."""
    breaker = settings.breaker
    return msgspec.structs.replace(
        settings,
        max_queued=MAX_QUEUED if settings.max_queued is None else settings.max_queued,
        breaker=msgspec.structs.replace(breaker, failures=FAILURES) if breaker.failures is None else breaker,
    )
