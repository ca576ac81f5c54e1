"""What a store keeps and hands out. JSON travels as bytes: what was encoded once is not encoded again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

LOCAL: Final = "local"
"""The owner where nobody tells owners apart."""

UNFINISHED: Final = ("queued", "in_progress")
"""Statuses of a response that still has something to come."""

DEFAULT_MAX_DEPTH: Final = 10_000
ANY_SIZE: Final = 1 << 62
EXPIRED_AT_ONCE: Final = 64
"""Turns a chain may have before it is refused: a guard against accidents, not a limit on conversations."""


class StoredResponse(msgspec.Struct, frozen=True):
    """One turn: the Response object as it was sent, and what was *new* in its input (never the history)."""

    id: str
    response: bytes
    """The Response object, compact JSON; its output items live inside it."""
    input: tuple[bytes, ...] = ()
    """The turn's own input items, each a JSON object."""
    previous_response_id: str | None = None
    created_at: float = 0.0
    status: str = "completed"
    model: str = ""
    provider: str = ""
    owner: str = LOCAL
    """Who may see it. Every question below is asked on behalf of one owner and sees nobody else's rows."""
    conversation: str | None = None
    """The one that it is a turn of: its items stand before the input, and what is said is added to it."""
    conversation_at: int = 0
    """Where that stood when the turn was begun."""
    memo: bytes = b""
    """What the gateway notes for itself: of an unfinished response what it needs to make it again, of a finished one
    how it was told. `update_status` drops the first with the end."""


class StoredTurn(NamedTuple):
    """What a later turn needs of an earlier one. Whether its status may be continued is the caller's policy."""

    id: str
    status: str
    model: str
    provider: str
    input: tuple[bytes, ...]
    output: tuple[bytes, ...]
    conversation: str | None = None
    """What stands before it, where it is the first turn: this conversation, as it was then."""
    conversation_at: int = 0


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive stream events, each one JSON object; `first` is the `sequence_number` of the first."""

    first: int
    events: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ItemPage:
    items: tuple[bytes, ...]
    """Each with an `id`: its own, or one made from its response and position."""
    first_id: str | None
    last_id: str | None
    has_more: bool


@dataclass(frozen=True, slots=True)
class StoreStats:
    responses: int
    """Responses that can be fetched: deleted ones are not counted."""
    deleted: int
    """Deleted responses whose id is still remembered, so that it cannot come back."""
    unfinished: int
    pieces: int
    """Distinct items and large fields: what is shared is counted once."""
    bytes: int
    """Space in use (SQLite: pages in use; freed pages are not counted)."""
    oldest: float | None
    newest: float | None
    conversations: int = 0
    conversation_items: int = 0
    """In all of them together."""


@dataclass(frozen=True, slots=True)
class Pruned:
    responses: int
    bytes: int
    conversations: int = 0


@dataclass(frozen=True, slots=True)
class StoredWord:
    """What a provider's server said of its own models, as `providers.word` writes it."""

    provider: str
    place: str
    """Which server it was: another address is another server."""
    data: bytes
    heard_at: float


@dataclass(frozen=True, slots=True)
class Signal:
    """A word for whoever holds a lease: `cancel`, `delete`."""

    owner: str
    name: str
    word: str


@dataclass(frozen=True, slots=True)
class Held:
    """What the holder of leases has to know."""

    names: frozenset[tuple[str, str]]
    """(owner, name) of every lease it holds now. One that is missing was lost: it expired or was released."""
    signals: tuple[Signal, ...]
    """Words that came since the last time; those for one lease in the order in which they were told."""


def run_lease(id: str) -> str:
    """The name of the lease that says: somebody is making this response."""
    return f"run:{id}"
