"""Model servers on this machine that nobody configured: looked for at the addresses of their provider files.

In: a configuration as it was read. Out: the servers that are there, each with one of its models, for `load_config` to
count. Worth knowing: it happens only where nobody named a provider, and where the gateway serves this machine alone and
asks for no key: whoever may use a gateway of several people is not thereby let in to what else runs beside it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from isthmus.addresses import host_of, is_loopback
from isthmus.config.load import Reading, load_config, read_config
from isthmus.errors import ConfigError
from isthmus.log import tell
from isthmus.providers import Provider, load_provider
from isthmus.providers.catalog import lists
from isthmus.providers.find import notice_names
from isthmus.providers.word.told import Told
from isthmus.upstream.notice import recognise

log = logging.getLogger("isthmus.wiring")

_PAUSE: Final = 1.0
"""Seconds at least between two looks, however often somebody asks for what is not there."""
_GONE: Final = 2
"""Looks in a row after which one that does not answer any more counts as gone: it may only be starting anew."""


def load_noticed(path: Path | None = None, *, overrides: Mapping[str, Any] | None = None) -> Reading:
    """The configuration with the servers that are there now; for commands, outside of any loop."""
    found = _look_once(reading := load_config(path, overrides=overrides))
    return load_config(path, overrides=overrides, noticed=found) if found else reading


def read_noticed(path: Path | None = None) -> Reading:
    """The same with its problems, for whoever shows them."""
    found = _look_once(reading := read_config(path))
    return read_config(path, noticed=found) if found else reading


def _look_once(reading: Reading) -> Mapping[str, str]:
    noticing = Noticing(reading)
    if noticing.allowed:
        asyncio.run(noticing.look())
    return noticing.found


def may_look(reading: Reading) -> bool:
    config, server = reading.config, reading.config.server
    alone = bool(server.unix_socket) or is_loopback(server.host)
    shared = server.api_keys or server.admin_key or config.teams
    return config.discovery.local and not reading.explicit and alone and not shared


class Noticing:
    def __init__(self, reading: Reading, *, shared: Callable[[], bool] = lambda: False) -> None:
        """`shared`: whether the gateway asks for keys that its store has."""
        self.found: dict[str, str] = {}
        """Provider → the model that is asked where nobody names one."""
        self.listed: dict[str, tuple[str, ...]] = {}
        """Provider → the models that it listed when it was last seen."""
        self.shared = shared
        self._missed: dict[str, int] = {}
        self._wanted = asyncio.Event()
        self._candidates: dict[str, Provider] = {}
        self.allowed = False
        self.adopt(reading)

    def adopt(self, reading: Reading) -> None:
        """Another configuration: it may want other servers, or none."""
        self.config = reading.config
        self.allowed = may_look(reading)
        configured = {name for name in reading.config.providers if name not in self.found}
        folders = [Path(folder) for folder in reading.config.provider_folders]
        self._candidates = dict(_candidates(folders, configured)) if self.allowed else {}

    @property
    def counted(self) -> Mapping[str, str]:
        """What a configuration may count on."""
        return {} if self.shared() else self.found

    def miss(self, name: str) -> str:
        """Somebody asks for a provider that is not served: words, where it is one that is looked for. It is, soon."""
        provider = self._candidates.get(name)
        if provider is None or self.shared():
            return ""
        self._wanted.set()
        where = provider.endpoint.base_url.partition("://")[2].partition("/")[0]
        return f"no server of it answers at `{where}` on this machine; start it, and ask again in a moment"

    async def look(self) -> bool:
        """Look once; whether something changed."""
        before = dict(self.found)
        asked = {} if self.shared() else self._candidates
        answers = await asyncio.gather(
            *(
                recognise(name, provider.endpoint.base_url, provider.notice, within=self.config.discovery.within)
                for name, provider in asked.items()
            )
        )
        for name, models in zip(asked, answers, strict=True):
            self._note(name, asked[name], models)
        for name in [name for name in self.found if name not in asked]:
            del self.found[name]
        return self.found != before

    async def keep_looking(self, changed: Callable[[], None]) -> None:
        """Look again and again; `changed` is called when something has come or gone."""
        while True:
            self._wanted.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.config.discovery.every or None):
                    await self._wanted.wait()
            if self.config.discovery.every and await self.look():
                changed()
            await asyncio.sleep(_PAUSE)

    def _note(self, name: str, provider: Provider, models: tuple[str, ...]) -> None:
        if models:
            self.listed[name] = models
            self._missed.pop(name, None)
            if name not in self.found:
                tell(log, "info", "provider.noticed", provider=name, at=provider.endpoint.base_url, models=len(models))
            if self.found.get(name) not in models:
                named = provider.default_model
                self.found[name] = named if named and lists(Told(models=models), named) else models[0]
        elif name in self.found:
            self._missed[name] = self._missed.get(name, 0) + 1
            if self._missed[name] >= _GONE:
                tell(log, "info", "provider.gone", provider=name, at=provider.endpoint.base_url)
                del self.found[name], self._missed[name]


def _candidates(folders: list[Path], configured: set[str]) -> Iterator[tuple[str, Provider]]:
    for name in notice_names(folders):
        with suppress(ConfigError):  # a broken file is told when it is used
            provider = load_provider(name, folders)
            if name not in configured and is_loopback(host_of(provider.endpoint.base_url)):
                yield name, provider
