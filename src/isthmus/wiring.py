"""Config → a running gateway; and another one in its place when the configuration changes.

This and the files beside it (`wiring_*`) are the one place that knows every driver. What outlives a configuration is in
`wiring_lasting`, what a provider keeps from one to the next in `wiring_ways`; a `Gateway` is made anew each time.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.bridge.choose import Choice
from isthmus.bridge.limits import RequestLimits, take_limits
from isthmus.conduct.aside import Aside
from isthmus.config.known import DEMO, tell_unserved
from isthmus.config.schema import Config, draws
from isthmus.errors import ConfigError
from isthmus.gateway.directory import Directory, Served
from isthmus.gateway.gateway import Gateway
from isthmus.gateway.runs import RunLimits
from isthmus.gateway.settings import Settings
from isthmus.observe.metrics.meters import Meters
from isthmus.ports import Workers
from isthmus.ports.tools import HostedTool
from isthmus.wiring_endpoints import http_endpoint
from isthmus.wiring_lasting import Lasting, new_id, open_lasting, start_pruning
from isthmus.wiring_providers import codex_options, missing_keys, serve_provider, server_asking
from isthmus.wiring_tools import LaterTool, open_hosted
from isthmus.wiring_ways import Way, Ways
from isthmus.wiring_workers import open_workers, schema_bounds
from isthmus.workers.pool import WorkerPool

if TYPE_CHECKING:  # loaded only where somebody uses it
    from isthmus.hooks.hooked import Hooks
    from isthmus.tools.images import Studio
    from isthmus.wiring_search import Searching

__all__ = [
    "House",
    "codex_options",
    "http_endpoint",
    "missing_keys",
    "new_id",
    "open_house",
    "open_workers",
    "running_gateway",
    "schema_bounds",
    "serve_provider",
    "server_asking",
]


@asynccontextmanager
async def running_gateway(config: Config, meters: Meters | None = None) -> AsyncIterator[Gateway]:
    """A gateway with everything it needs, closed in the right order. `meters`: where it is counted what it does."""
    async with open_house(meters) as house:
        yield await house.open(config)


@asynccontextmanager
async def open_house(meters: Meters | None = None, missed: Callable[[str], str] | None = None) -> AsyncIterator[House]:
    """Where one gateway follows another, as the configuration changes. `missed`: is told the name of a provider that a
    request asks for and nobody serves; what it says is said, if it says something."""
    house = House(meters, missed)
    try:
        yield house
    finally:
        await house.aclose()


class House:
    def __init__(self, meters: Meters | None = None, missed: Callable[[str], str] | None = None) -> None:
        self._meters = meters
        self._missed = missed
        self._stack = AsyncExitStack()
        """What outlives every gateway."""
        self._aside = Aside()
        self._workers: WorkerPool | None = None
        self._ways = Ways()
        self._lasting: Lasting | None = None
        self._pruning: asyncio.Task[None] | None = None
        self.gateway: Gateway | None = None
        """The one that serves."""
        self._rooms: dict[Gateway, tuple[AsyncExitStack, dict[str, Way]]] = {}
        """Each with what is its own, and the ways that it shares."""

    async def open(self, config: Config) -> Gateway:
        """A gateway for this configuration. It takes the place of the one before at once, which goes on with what it
        has begun, and is to be closed (`close`) when that is over. Raises `ConfigError`: then nothing has changed."""
        if not config.providers:
            raise ConfigError("no provider is configured; run `isthmus init`, or set a key such as DEEPSEEK_API_KEY")
        if self._workers is None:
            self._workers = open_workers(config.checks)
            self._stack.push_async_callback(self._workers.aclose)
        ways, own = await self._ways.open(config, self._workers, self._aside), AsyncExitStack()
        served = {name: way.served for name, way in ways.items()}
        try:
            if self._lasting is None:
                self._lasting = open_lasting(config, served, self._workers, self._aside, self._meters, self._stack)
            gateway = _make_gateway(config, served, self._lasting, own, self.gateway, self._missed)
        except BaseException:
            await own.aclose()
            await self._ways.leave(ways)
            raise
        self._rooms[gateway] = own, ways
        self._ways.keep(ways)
        if self.gateway is None:
            self._start(config, gateway, self._lasting)
        else:
            self._lasting.adopt(config, served)
            gateway.take_place(self.gateway)
        self.gateway = gateway
        return gateway

    async def close(self, gateway: Gateway) -> None:
        """One whose place was taken, and that nobody needs any more."""
        own, ways = self._rooms.pop(gateway)
        await gateway.retire()
        await own.aclose()
        await self._ways.leave(ways)

    async def aclose(self) -> None:
        async with self._stack:
            if self._pruning is not None:
                self._pruning.cancel()
            if self.gateway is not None:
                await self.gateway.aclose()
            for gateway in list(self._rooms):
                await self.close(gateway)

    def _start(self, config: Config, gateway: Gateway, lasting: Lasting) -> None:
        gateway.words.start()
        if lasting.deliveries is not None:
            lasting.deliveries.start()
        self._pruning = start_pruning(config, lasting.store)


def _make_gateway(
    config: Config,
    served: Mapping[str, Served],
    lasting: Lasting,
    own: AsyncExitStack,
    before: Gateway | None,
    missed: Callable[[str], str] | None,
) -> Gateway:
    searching = _open_search(config, lasting.workers) if config.search.backend else None
    studio = _later_studio(config, served, own, lasting.aside)
    hosted = open_hosted(config, (*(() if searching is None else (searching.tool,)), *_drawing(studio)))
    return Gateway(
        Directory(
            served=served,
            default=config.models.default or None,
            aliases=_aliases(config),
            fallbacks=config.models.fallbacks,
            choices=choices_of(config),
            unserved=functools.partial(_tell_unserved, config, missed),
        ),
        lasting.store,
        checker=lasting.checker,
        settings=Settings(
            strict=config.plan.strict,
            repair_budget=config.plan.repair_budget,
            max_chain=config.store.max_chain,
            envelope_key=lasting.key,
            bounds=schema_bounds(config.checks),
            limits=take_limits(RequestLimits, config.limits),
            keep_lessons=config.lessons.keep,
            keep_named=config.store.idempotency,
            refresh_words=config.models.refresh,
            runs=RunLimits(
                background=config.background.max_running,
                queued=config.background.max_queued,
                lease=config.background.lease,
                told=config.limits.max_told,
            ),
            tools=hosted.limits,
        ),
        now=time.time,
        new_id=new_id,
        observer=lasting.observer,
        aside=lasting.aside,
        deliveries=lasting.deliveries,
        tracing=lasting.tracer,
        studio=studio,
        hosted=hosted,
        search=None if searching is None else searching.standalone,
        admission=lasting.gate,
        hooks=_open_hooks(config, lasting.aside) if config.hooks.uses else None,
        before=before,
    )


def _tell_unserved(config: Config, missed: Callable[[str], str] | None, name: str) -> str:
    told = tell_unserved(name, [Path(folder) for folder in config.provider_folders])
    absent = missed(name) if missed is not None else ""
    return f"{absent}; or {told}" if absent and told else absent or told


def _open_hooks(config: Config, aside: Aside) -> Hooks:
    from isthmus.wiring_hooks import open_hooks

    return open_hooks(config, aside)


def _open_search(config: Config, workers: Workers) -> Searching:
    from isthmus.wiring_search import open_search

    return open_search(config, workers)


def _later_studio(
    config: Config, served: Mapping[str, Served], stack: AsyncExitStack, aside: Aside
) -> Callable[[], Studio] | None:
    """Who draws images, where somebody does: opened, and loaded, with the first of them, if it is the demo; anybody
    else at once, so that a mistake is told when it is made."""
    if not draws(config):
        return None

    @functools.cache
    def studio() -> Studio:
        from isthmus.wiring_images import open_studio

        return open_studio(config, served, stack, aside)

    if config.images.provider != DEMO:
        studio()
    return studio


def _drawing(studio: Callable[[], Studio] | None) -> Iterator[HostedTool]:
    if studio is None:
        return

    async def opened() -> HostedTool:
        from isthmus.tools.images import ImageTool

        return ImageTool(studio())

    yield LaterTool("image_generation", opened)


def _aliases(config: Config) -> Mapping[str, str]:
    """With nothing but the demo model, every name means it: a client may keep the name it always sends."""
    if list(config.providers) == ["demo"] and "*" not in config.models.aliases and config.models.default:
        return {**config.models.aliases, "*": config.models.default}
    return config.models.aliases


def choices_of(config: Config) -> dict[str, Choice]:
    """Names that stand for several targets."""
    return {
        name: Choice(tuple(choice.targets), tuple(choice.weights), choice.by)
        for name, choice in config.models.choices.items()
    }
