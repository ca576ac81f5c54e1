"""Where traces are read: the file of the gateway on this machine, or a gateway at an address.

In: the options of a command. Out: a `TraceReader`. The file is read beside a gateway that runs, and nothing is written
to it; whoever may read it sees the traces of all. Over HTTP one sees what the key may see.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, Protocol, TypeVar

import typer

from isthmus.bridge.limits import take_limits
from isthmus.cli.help_view import WHERE
from isthmus.errors import ConfigError

if TYPE_CHECKING:  # loaded only where it is used
    from isthmus.config.schema import Config
    from isthmus.ports.traced import Trace, TraceSummary
    from isthmus.ports.traces import TraceFilter, TracePage, TraceStore

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", metavar="FILE", help="Config file (TOML).", rich_help_panel=WHERE)
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        help="`sqlite:PATH` or `postgresql://…`, in place of the config's store: the traces lie beside it.",
        rich_help_panel=WHERE,
    ),
]
GatewayOption = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        "--url",
        metavar="URL",
        help="A gateway elsewhere, in place of the file of this machine's.",
        rich_help_panel=WHERE,
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        envvar="ISTHMUS_API_KEY",
        show_envvar=False,
        help="A key for the gateway; else $ISTHMUS_API_KEY.",
        rich_help_panel=WHERE,
    ),
]
LAST: Final = "last"
_LOOKED_AT: Final = 100
"""Traces among which the last one to a model is looked for: others are traced, too (a conversation is made …)."""
_T = TypeVar("_T")


class TraceReader(Protocol):
    """What the commands ask. The store of the traces answers it for the operator, a gateway for its caller."""

    async def find(self, id: str) -> Trace | None: ...

    async def list(
        self, filter: TraceFilter, *, limit: int, after: int | None = None, order: Literal["asc", "desc"] = "desc"
    ) -> TracePage: ...

    async def walk(self, id: str) -> Sequence[TraceSummary]: ...

    def export(self, filter: TraceFilter) -> AsyncIterator[Trace]: ...


class FileTraces:
    def __init__(self, store: TraceStore) -> None:
        self._store = store

    async def find(self, id: str) -> Trace | None:
        return await self._store.find(None, id)

    async def list(
        self, filter: TraceFilter, *, limit: int, after: int | None = None, order: Literal["asc", "desc"] = "desc"
    ) -> TracePage:
        return await self._store.list(None, filter, limit=limit, after=after, order=order)

    async def walk(self, id: str) -> Sequence[TraceSummary]:
        return await self._store.walk(None, id)

    def export(self, filter: TraceFilter) -> AsyncIterator[Trace]:
        return self._store.export(None, filter)


async def named(reader: TraceReader, id: str) -> str:
    """The id that is meant: `last` is the last request to a model."""
    if id != LAST:
        return id
    from isthmus.ports.traces import TraceFilter

    newest = await reader.list(TraceFilter(), limit=_LOOKED_AT)
    found = next((trace.id for trace in newest.traces if trace.door != "other"), None)
    if found is None:
        raise ConfigError("no request to a model was traced yet, so there is no last one")
    return found


def with_traces(
    config: Path | None,
    store: str | None,
    gateway: str | None,
    key: str | None,
    use: Callable[[TraceReader], Awaitable[_T]],
) -> _T:
    """What `use` makes of the traces."""

    async def main() -> _T:
        if gateway:
            from isthmus.cli.trace_remote import RemoteTraces

            remote = RemoteTraces(gateway, key or "")
            try:
                return await use(remote)
            finally:
                await remote.aclose()
        opened = open_file(read_settings(config, store))
        try:
            return await use(FileTraces(opened))
        finally:
            opened.close()

    return asyncio.run(main())


def open_file(settings: Config) -> TraceStore:
    """The traces beside the store; a file of them must be there: looking for them must not make any."""
    from isthmus.store.open import ServerLimits, is_server, open_traces, traces_path
    from isthmus.store.traces.schema import is_made

    if is_server(settings.store.url):
        return open_traces(settings.store.url, server=take_limits(ServerLimits, settings.store))
    path = traces_path(settings.store.url)
    if path is None:
        raise ConfigError(
            "the traces beside a `memory:` store live and die with their gateway; ask it while it runs: "
            "`--gateway http://127.0.0.1:8484`"
        )
    if not is_made(path):
        raise ConfigError(f"there are no traces at `{path}`: {_why_none(settings)}")
    return open_traces(settings.store.url)


def find_file(settings: Config) -> TraceStore | None:
    """The same, where it may be missing."""
    from isthmus.store.open import is_server, open_traces, traces_path
    from isthmus.store.traces.schema import is_made

    if is_server(settings.store.url):
        return open_file(settings)
    path = traces_path(settings.store.url)
    return open_traces(settings.store.url) if path is not None and is_made(path) else None


def read_settings(config: Path | None, store: str | None) -> Config:
    """A provider without its key is no reason to keep a person from the traces."""
    from isthmus.config import read_config
    from isthmus.values.problems import as_error

    reading = read_config(config, overrides={"store.url": store})
    troubles = [problem for problem in reading.errors if problem.key[:1] in (("store",), ("trace",))]
    if troubles:
        raise as_error(troubles)
    return reading.config


def _why_none(settings: Config) -> str:
    if settings.trace.capture == "off":
        return 'they are switched off here; set `trace.capture = "metadata"` (or `full`) and start the gateway anew'
    return "no gateway has answered a request on this store yet; is `store.url`, or `--store`, right?"
