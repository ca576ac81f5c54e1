"""Where somebody is served, and what is known of the way there: data, all of it settled before anything is sent.

In: what is configured. Out: an `Endpoint`, which `wire.py` takes requests to. Worth knowing: whatever in it nobody else
may see is left out of its `repr`, and named by `secrets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from isthmus.scrub import Secret, header_secrets, query_secrets, url_secrets
from isthmus.upstream.breaker import NEVER, BreakerRule
from isthmus.upstream.guard import Allows, Lookup
from isthmus.upstream.sign import Signer

MAX_CONNECTIONS: Final = 1000
"""As many as a gateway serves at the same time (`server.max_concurrent`): an agent holds its stream for minutes, so
with fewer than that its neighbours would wait for its connection, not for the provider."""
MAX_QUEUED: Final = 100
"""Requests that may wait for a connection in a gateway. More than the queue of a local server that works on a few at a
time, less than would still wait when their clients have given up."""


class Waits(Protocol):
    """How long to wait, in seconds: a provider's `timeouts` just as they are configured, or a `Patience`."""

    @property
    def connect(self) -> float: ...
    @property
    def first_byte(self) -> float: ...
    @property
    def idle(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Patience:
    """The same where nobody configures it."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 300.0


EMBEDDINGS: Final = "embeddings"
"""What is spoken where vectors are made."""
IMAGES: Final = "images"
IMAGE_EDITS: Final = "image edits"
"""Likewise where images are drawn, and changed."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another address of the same house, with the headers for it."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where somebody is served, which way leads there, and how much we ask at a time."""

    provider: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    proxy: str | None = field(default=None, repr=False)
    trust_env: bool = True
    verify_tls: bool = True
    max_connections: int = MAX_CONNECTIONS
    max_queued: int | None = None
    """How many may wait for one of these; `None`: any number."""
    max_queued_per_owner: int | None = None
    """How many of one owner's; likewise."""
    queue_timeout: float | None = None
    """Seconds that they wait; `None`: as long as for the first byte."""
    breaker: BreakerRule = NEVER
    patience: Waits = Patience()
    called: str = ""
    """What sentences call it where it is no provider of the configuration."""
    others: Mapping[str, Elsewhere] = field(default_factory=dict, repr=False)
    """Dialect → where it is spoken, where some models are spoken to in another one than the rest; `EMBEDDINGS` → where
    vectors are made, `IMAGES` and `IMAGE_EDITS` → where images are, if anywhere."""
    credential: str = ""
    """Which key stands in the headers, in words: where it comes from, or why there is none."""
    signer: Signer | None = field(default=None, repr=False)
    """Who shows who we are where no fixed header does."""
    allows: Allows | None = field(default=None, repr=False)
    """To which IP addresses its host's name may lead; `None`: to any."""
    lookup: Lookup | None = field(default=None, repr=False)
    """Who knows them; `None`: the system."""

    def secrets(self) -> Iterator[Secret]:
        """Everything in it that nobody else may see."""
        yield from header_secrets(self.headers)
        yield from query_secrets(self.query)
        yield from url_secrets(self.url)
        yield from url_secrets(self.proxy or "")
        for other in self.others.values():
            yield from header_secrets(other.headers)
            yield from url_secrets(other.url)
