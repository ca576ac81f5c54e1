"""Keys: who may ask, for what, and how much; and what those did who look after them.

A key itself (`ik_…`) is shown once and kept nowhere: only its digest is. Whoever holds one may change it for a new one
without losing anything, because everything belongs to the key's id, or to its team.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol


@dataclass(frozen=True, slots=True)
class Rates:
    """How much at a time; 0: no limit."""

    requests_per_minute: int = 0
    tokens_per_minute: int = 0
    """What is sent and what is made, together."""
    concurrent_requests: int = 0
    concurrent_streams: int = 0


@dataclass(frozen=True, slots=True)
class Budget:
    """US dollars; 0: no limit. Days and months are those of UTC."""

    day: float = 0.0
    month: float = 0.0


NO_RATES: Final = Rates()
NO_BUDGET: Final = Budget()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a key opens; whatever is left empty is not narrowed."""

    models: tuple[str, ...] = ()
    """Names as clients send them, or `provider/model`; `*` stands for anything (`deepseek/*`)."""
    endpoints: frozenset[str] = frozenset()
    """Names of `ENDPOINTS`."""
    tools: tuple[str, ...] | None = None
    """Tools that run here (`web_search`, `mcp:NAME`, `image_generation` …); `None`: all, `()`: none."""
    admin: bool = False
    """Whether it opens what only an operator should do; it opens everything else, too."""
    rates: Rates = NO_RATES
    budget: Budget = NO_BUDGET


EVERYTHING: Final = Grant()
ENDPOINTS: Final = (
    *("responses", "chat", "messages", "embeddings", "images", "search", "conversations", "models", "traces"),
    *("usage", "page", "metrics"),
)
"""What a key may be narrowed to: each route belongs to one of them, or is the operator's alone, or is open to all."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    id: str
    """`key_…`: what logs, traces and usage show."""
    name: str
    """What people call it. Of the keys that are in force no two have the same."""
    digest: bytes
    """SHA-256 of the key: it is long and random, so that a slow hash would protect nothing."""
    prefix: str
    """Its first characters, by which its holder recognises it."""
    created_at: float
    team: str = ""
    """Those of one team share what they have made, and the team's limits and budget."""
    grant: Grant = EVERYTHING
    metadata: Mapping[str, str] = field(default_factory=dict)
    expires_at: float = 0.0
    """0: never."""
    revoked_at: float = 0.0
    """0: it is in force."""
    previous: bytes = b""
    """Digest of the key before it was changed for this one."""
    previous_until: float = 0.0
    """Until when that one opens as well."""

    @property
    def owner(self) -> str:
        """Whose everything is that is made with it."""
        return f"team:{self.team}" if self.team else self.id

    def in_force(self, at: float) -> bool:
        return not self.revoked_at and not 0 < self.expires_at <= at


@dataclass(frozen=True, slots=True)
class Deed:
    """Something that an operator did."""

    at: float
    actor: str
    """The id of the key that was shown; `cli`: somebody with access to the store itself; `local`: no key was needed."""
    action: str
    """`key.create`, `key.revoke`, `key.rotate`, `trace.capture` …"""
    target: str
    """What it was done to, by its id."""
    details: Mapping[str, str] = field(default_factory=dict)
    """Without secrets."""
    number: int = 0
    """Given by the store: a later one has a higher one."""


MOST_DEEDS: Final = 100_000


class KeyBook(Protocol):
    """Every change is written with its deed, in one step: neither is ever there without the other."""

    async def add_key(self, key: StoredKey, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        """Refused (`key_exists`) where another key that is in force at the time of the deed has its name. Its id and
        its digest are new."""

    async def change_key(self, key: StoredKey, deed: Deed, *, was: StoredKey, most: int = MOST_DEEDS) -> bool:
        """Write it anew, all of it. False: it is not as it `was` any more, there is no key of this id, or it was
        revoked and stays so; nothing was written. A name is refused as above."""

    async def keys(self) -> list[StoredKey]:
        """All of them, the oldest first, those that were revoked or are out of date included: none is ever forgotten.

        `StoreDamaged` where one of them is not as it was written: nobody is let in by a guess.
        """

    async def keys_mark(self) -> int:
        """A number that is another one after each deed, in whichever process: cheap enough to ask twice a second."""

    async def note_deed(self, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        """Remember something that changed no key; of more than `most` the oldest are forgotten."""

    async def deeds(self, *, most: int = 100, before: int | None = None) -> list[Deed]:
        """The latest first, of those with a lower number than `before`."""
