"""Profiles, a configuration or an address → a `Bridge`: the client with its drivers.

In: what a user writes (`Bridge.from_env()`, `Bridge(profiles=…)`, `Bridge.remote(url)`). Out: a client whose lines are
opened when a model first needs them: one for each profile, with its own connections and its own key.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from isthmus.bridge.limits import RequestLimits, take_limits
from isthmus.bridge.resolve import nearest_name, resolve_model
from isthmus.client.bridge import BridgeClient
from isthmus.client.limiter import RateLimit
from isthmus.client.limits import Limits
from isthmus.client.line import Connect, Line, Route
from isthmus.client.local import LocalLine
from isthmus.client.names import ModelName, split_model
from isthmus.client.remote import RemoteLine
from isthmus.client.retry import Retry
from isthmus.conduct.hosted import Hosted
from isthmus.config import load_config
from isthmus.config.known import all_names
from isthmus.config.profiles import read_profile, require_key
from isthmus.config.schema import Config, ProviderConfig, draws
from isthmus.errors import ConfigError
from isthmus.ports import Workers
from isthmus.ports.tools import HostedTool
from isthmus.tools.definition import ToolLike
from isthmus.upstream.remote import GatewayAddress, RemoteGateway
from isthmus.wiring import open_workers, schema_bounds
from isthmus.wiring import serve_provider as serve_provider
from isthmus.wiring_tools import LaterTool, open_hosted
from isthmus.workers.checker import PooledChecker
from isthmus.workers.pool import WorkerPool

if TYPE_CHECKING:
    from isthmus.hooks.hooked import Hooks

Profiles = Mapping[str, Mapping[str, Mapping[str, Any] | ProviderConfig]]
"""Provider → profile → settings, spelled as in the configuration: `{"openai": {"prod": {"api_key": "…"}}}`."""
DEFAULT = "default"


class Bridge(BridgeClient):
    """One message model, every provider, tools that run.

        async with Bridge.from_env() as bridge:
            print((await bridge.run("deepseek/deepseek-v4-pro", "Hello")).output)

    Leave the block, or call `aclose`, and every connection is closed.
    """

    def __init__(
        self,
        profiles: Profiles | None = None,
        *,
        config: Config | None = None,
        default: str | None = None,
        tools: Iterable[ToolLike] = (),
        limits: Limits | None = None,
        retry: Retry | None = None,
        rate_limit: RateLimit | None = None,
        connect: Connect | None = None,
        environ: Mapping[str, str] | None = None,
        executors: Iterable[HostedTool] = (),
    ) -> None:
        """`default` is the model of calls that name none. Nothing is read from the environment unless it is given.
        `executors` run hosted tools (`hosted=[{"type": "web_search"}]`) here, beside those of the configuration."""
        connect = connect or LocalConnect(profiles or {}, config or Config(), default, environ or {}, executors)
        super().__init__(connect, tools=tools, limits=limits, retry=retry, rate_limit=rate_limit)

    @classmethod
    def from_env(
        cls,
        *,
        config_file: Path | str | None = None,
        environ: Mapping[str, str] | None = None,
        profiles: Profiles | None = None,
        tools: Iterable[ToolLike] = (),
        limits: Limits | None = None,
        retry: Retry | None = None,
        rate_limit: RateLimit | None = None,
    ) -> Self:
        """The gateway's own configuration and the keys in the environment; or, with `ISTHMUS_BASE_URL`, a gateway.

        Nothing is connected before a model is asked.
        """
        environ = os.environ if environ is None else environ
        address = environ.get("ISTHMUS_BASE_URL", "").strip()
        connect: Connect
        if address:
            default = environ.get("ISTHMUS_MODEL", "").strip()
            connect = RemoteConnect(GatewayAddress(address, environ.get("ISTHMUS_API_KEY", "").strip()), default)
        else:
            config = load_config(config_file, environ=environ).config
            connect = LocalConnect(profiles or {}, config, environ.get("ISTHMUS_MODEL", "").strip() or None, environ)
        return cls(connect=connect, tools=tools, limits=limits, retry=retry, rate_limit=rate_limit)

    @classmethod
    def remote(
        cls,
        url: str,
        *,
        api_key: str = "",
        default: str = "",
        tools: Iterable[ToolLike] = (),
        limits: Limits | None = None,
        retry: Retry | None = None,
        rate_limit: RateLimit | None = None,
    ) -> Self:
        """A gateway at an address; model names are those that it knows."""
        connect = RemoteConnect(GatewayAddress(url, api_key), default)
        return cls(connect=connect, tools=tools, limits=limits, retry=retry, rate_limit=rate_limit)


class RemoteConnect:
    """Every model is behind one gateway."""

    def __init__(self, address: GatewayAddress, default: str = "") -> None:
        self._line = RemoteLine("gateway", RemoteGateway(address), credential=_digest(address.api_key))
        self._default = default

    async def find(self, model: str | None) -> Route:
        return Route(self._line, (model or self._default).strip())

    async def lines(self) -> list[Line]:
        return [self._line]

    async def aclose(self) -> None:
        await self._line.aclose()


class LocalConnect:
    """Providers in this process, opened on first use."""

    def __init__(
        self,
        profiles: Profiles,
        config: Config,
        default: str | None,
        environ: Mapping[str, str],
        executors: Iterable[HostedTool] = (),
    ) -> None:
        folders = [Path(folder) for folder in config.provider_folders]
        self._profiles = {
            provider: {
                name: read_profile(("profiles", provider, name), provider, given, environ=environ, folders=folders)
                for name, given in named.items()
            }
            for provider, named in profiles.items()
        }
        self._config = config
        self._folders = folders
        self._environ = environ
        self._default = default or config.models.default or None
        self._lines: dict[tuple[str, str], LocalLine] = {}
        self._drivers = AsyncExitStack()
        self._opening: asyncio.Lock | None = None
        self._workers: WorkerPool | None = None
        self._executors = tuple(executors)
        self._hosted: Hosted | None = None
        self._hooks: Hooks | None = None

    async def find(self, model: str | None) -> Route:
        name = self._name(model)
        return Route(await self._line(name.provider, name.profile), name.model)

    async def lines(self) -> list[Line]:
        found: list[Line] = []
        for provider, profile in self._set_up():
            try:
                found.append(await self._line(provider, profile))
            except ConfigError:
                continue  # no key for it: asking for one of its models says so
        return found

    async def aclose(self) -> None:
        lines, self._lines = self._lines, {}
        drivers, self._drivers = self._drivers, AsyncExitStack()
        self._opening = None
        workers, self._workers = self._workers, None
        hosted, self._hosted = self._hosted, None
        for line in lines.values():
            await line.aclose()
        await drivers.aclose()
        if hosted is not None:
            await hosted.aclose()
        if workers is not None:
            await workers.aclose()

    def _name(self, model: str | None) -> ModelName:
        models = self._config.models
        known = [*self._profiles, *self._config.providers, *all_names(self._folders)]
        default = self._default or ""
        asked = (model or "").strip() or models.aliases.get(default, default)
        if models.aliases.get(asked, asked) in models.choices:
            words = f"`{asked}` stands for several models, among which a gateway chooses; name one of them"
            raise ConfigError(f"{words}, or ask a gateway (`Bridge.remote`)", code="invalid_model")
        split = split_model(asked, known) if asked not in models.aliases else None
        if split is not None and split.provider in known:
            return split
        providers = dict.fromkeys([*self._profiles, *self._config.providers])
        found = resolve_model(asked or None, models.aliases, self._default, providers)
        return ModelName(found.provider, found.model)

    async def _line(self, provider: str, profile: str) -> LocalLine:
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            line = self._lines.get((provider, profile))
            if line is None:
                line = self._lines[(provider, profile)] = await self._open(provider, profile)
            return line

    async def _open(self, provider: str, profile: str) -> LocalLine:
        settings = self._find_settings(provider, profile)
        require_key(provider, settings, self._folders)
        name = f"{provider}@{profile}" if profile else provider
        # New attempts are the client's own business: it counts them, and it knows the deadline.
        settings = msgspec.structs.replace(settings, retries=0)
        checks = self._config.checks
        workers = self._workers = self._workers or open_workers(checks)
        if self._hosted is None:
            self._hosted = open_hosted(
                self._config, (*self._searching(workers), *self._drawing(workers), *self._executors)
            )
        served = await serve_provider(name, settings, self._config, self._drivers, workers)
        return LocalLine(
            name,
            served.provider,
            served.backend,
            checker=PooledChecker(workers, cache=checks.cache),
            capabilities=served.capabilities,
            list_models=served.models,
            credential=_digest("\0".join([settings.api_key, *settings.api_keys])),
            strict=self._config.plan.strict,
            repair_budget=self._config.plan.repair_budget,
            bounds=schema_bounds(checks),
            keep_lessons=self._config.lessons.keep,
            limits=take_limits(RequestLimits, self._config.limits),
            hosted=self._hosted,
            hooks=self._open_hooks(),
        )

    def _open_hooks(self) -> Hooks | None:
        if self._hooks is None and self._config.hooks.uses:
            from isthmus.wiring_hooks import open_hooks

            self._hooks = open_hooks(self._config)
        return self._hooks

    def _searching(self, workers: Workers) -> Iterable[HostedTool]:
        """What `[search]` of the configuration runs."""
        if not self._config.search.backend:  # loaded only where somebody searches
            return ()
        from isthmus.wiring_search import search_tools

        return search_tools(self._config, workers)

    def _drawing(self, workers: Workers) -> Iterator[HostedTool]:
        """What `[images]` of the configuration runs."""
        if draws(self._config):

            async def opened() -> HostedTool:
                from isthmus.wiring_images import open_image_tool

                return await open_image_tool(self._config, self._drivers, workers)

            yield LaterTool("image_generation", opened)

    def _find_settings(self, provider: str, profile: str) -> ProviderConfig:
        named = self._profiles.get(provider, {})
        if profile:
            if profile in named:
                return named[profile]
            near = nearest_name(profile, named)
            hint = f"did you mean `{near}`?" if near else f"there are: {', '.join(named) or 'none'}"
            raise ConfigError(f"provider `{provider}` has no profile `{profile}`; {hint}", code="unknown_profile")
        if DEFAULT in named:
            return named[DEFAULT]
        if provider in self._config.providers:
            return self._read(provider, self._config.providers[provider])
        if len(named) == 1:
            return next(iter(named.values()))
        if named:
            raise ConfigError(
                f"provider `{provider}` has several profiles; name one: `{provider}@{next(iter(named))}/…`",
                code="ambiguous_profile",
            )
        return self._read(provider, ProviderConfig())

    def _read(self, provider: str, given: ProviderConfig) -> ProviderConfig:
        return read_profile(("providers", provider), provider, given, environ=self._environ, folders=self._folders)

    def _set_up(self) -> Iterator[tuple[str, str]]:
        for provider, named in self._profiles.items():
            yield from ((provider, "" if profile == DEFAULT else profile) for profile in named)
        for provider in self._config.providers:
            if DEFAULT not in self._profiles.get(provider, {}):
                yield provider, ""


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
