"""What a gateway has to serve with, told when it starts: each provider, its models, its key, and whether it is there.

In: a running gateway and its configuration. Out: plain lines that fit the width. Worth knowing: a connection is opened
to each provider and closed again, nothing is sent; nobody waits for longer than a moment, and the gateway serves
meanwhile. Nothing here needs a library for tables: a start has no time for one.
"""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from isthmus.config.keys import Key, shows_header
from isthmus.config.known import DEMO
from isthmus.providers.schema import COMPUTED

if TYPE_CHECKING:
    from isthmus.config.schema import Config, ProviderConfig
    from isthmus.gateway.directory import Served
    from isthmus.gateway.gateway import Gateway

_MOMENT: Final = 1.5
"""Seconds that a provider has to be reached."""
_HEAD: Final = ("provider", "models", "key", "reachable")
_GAP: Final = "   "
_NARROWEST: Final = 24
"""Columns that the last of them has at least."""


@dataclass(frozen=True, slots=True)
class Row:
    provider: str
    models: str
    key: str
    reachable: str


async def look_at_providers(
    gateway: Gateway, config: Config, noticed: Mapping[str, Sequence[str]] | None = None
) -> list[Row]:
    """`noticed`: the servers that were found on this machine, with what they list."""
    found = noticed or {}
    served = gateway.directory.served
    return await asyncio.gather(
        *(
            _row(each, config.providers[name], found.get(name))
            for name, each in served.items()
            if name in config.providers
        )
    )


def table(rows: Sequence[Row], width: int, indent: str = "  ") -> list[str]:
    """Lines of at most `width` columns; only words in the last column are broken."""
    cells = [_HEAD, *((row.provider, row.models, row.key, row.reachable) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(3)]
    last = max(width - len(indent) - sum(widths) - 3 * len(_GAP), _NARROWEST)
    return [line for cell in cells for line in _lines(cell, widths, last, indent)]


def _lines(cell: tuple[str, str, str, str], widths: Sequence[int], last: int, indent: str) -> Iterator[str]:
    start = _GAP.join(text.ljust(width) for text, width in zip(cell, widths, strict=False))
    first, *more = textwrap.wrap(cell[3], last) or [""]
    yield f"{indent}{start}{_GAP}{first}".rstrip()
    for line in more:
        yield f"{indent}{' ' * len(start)}{_GAP}{line}"


async def _row(served: Served, settings: ProviderConfig, noticed: Sequence[str] | None) -> Row:
    if noticed is not None:
        where = served.provider.endpoint.base_url.partition("://")[2].partition("/")[0]
        return Row(served.name, str(len(noticed)), key_of(served, settings), f"✓ found at {where}")
    trouble = models = None
    try:
        async with asyncio.timeout(_MOMENT):
            trouble, models = await asyncio.gather(served.backend.ready(), served.offered())
    except TimeoutError:
        trouble = "no answer yet"
    if served.provider.name == DEMO and not settings.base_url:
        reachable = "✓ built in"
    else:
        reachable = "✓ yes" if trouble is None else f"✗ {trouble}"
    return Row(served.name, "?" if models is None else str(len(models)), key_of(served, settings), reachable)


def key_of(served: Served, settings: ProviderConfig) -> str:
    """Where the key comes from, or why there is none; in a few words, and never the key."""
    facts = served.provider.endpoint
    facts = facts.alternative(settings.endpoint) if settings.endpoint else facts
    key = settings.api_key
    if several := len(settings.api_keys) or sum(bool(place.api_key) for place in settings.endpoints):
        return f"{several} keys"
    if key:
        return (
            key.told.removeprefix("the key in ").replace("`", "").partition(" (")[0]
            if isinstance(key, Key)
            else "given"
        )
    if shows_header(settings):
        return "in headers"
    if isinstance(key, Key) and key.withheld:
        return f"${key.withheld} withheld"
    if facts.auth in COMPUTED:
        return COMPUTED[facts.auth]
    if facts.needs_key and not settings.base_url:
        return f"missing: set ${facts.key_env[0]}"
    return "none needed"
