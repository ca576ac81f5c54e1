"""What the HTTP side is told, and how it reads query strings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from starlette.types import Scope

from isthmus.config.schema import Limits, Server, WebSocket
from isthmus.errors import RequestRefused
from isthmus.observe.metrics.meters import Meters
from isthmus.observe.vitals import Vitals
from isthmus.ports.keys import MOST_DEEDS
from isthmus.server.callers import Keys

if TYPE_CHECKING:  # only words here: most servers show no page
    from isthmus.config.load import Reading
    from isthmus.server.reporting import Reporting


@dataclass(frozen=True, slots=True)
class ServerOptions:
    server: Server = field(default_factory=Server)
    """As configured; the rest is made of it once."""
    websocket: WebSocket = field(default_factory=WebSocket)
    local_only: bool = False
    """Whether we listen on the loopback: then web pages and foreign host names are kept out."""
    allow_origins: frozenset[str] = frozenset()
    keys: Keys = field(default_factory=Keys)
    prefix: str = ""
    """Where a proxy hangs us up: `/isthmus`."""
    missing_keys: Mapping[str, str] = field(default_factory=dict)
    """Provider → why it has no key, where it needs one."""
    limits: Limits = field(default_factory=Limits)
    audit_entries: int = MOST_DEEDS
    """Deeds of operators that are remembered."""
    vitals: Vitals | None = None
    """Who measures the loop and the memory."""
    meters: Meters | None = None
    """Where everything is counted; `None`: nothing is."""
    reading: Reading | None = None
    """The configuration with the origin of each value, where the page may show it."""
    reporting: Reporting | None = None
    """The line to the other workers, where there are some."""


def query(scope: Scope) -> dict[str, str]:
    try:
        return dict(parse_qsl(str(scope["query_string"], "latin-1"), keep_blank_values=True, max_num_fields=50))
    except ValueError as error:
        raise RequestRefused(f"the query string cannot be read: {error}") from error


def query_list(scope: Scope, name: str) -> list[str]:
    """All values of a field that may be there several times, spelled as SDKs spell lists or plainly."""
    query(scope)  # refused where it cannot be read
    given = parse_qsl(str(scope["query_string"], "latin-1"), keep_blank_values=True)
    return [value for key, value in given if key == name or (key.startswith(f"{name}[") and key.endswith("]"))]


def whole_number(asked: Mapping[str, str], name: str, *, default: int, low: int, high: int | None = None) -> int:
    given = asked.get(name)
    if given is None:
        return default
    if given.isascii() and given.isdigit() and len(given) < 16 and int(given) >= low:
        number = int(given)
        if high is None or number <= high:
            return number
    bounds = f"from {low} to {high}" if high is not None else f"of at least {low}"
    raise RequestRefused(f"`{name}` must be a whole number {bounds}", code="invalid_value", param=name)
