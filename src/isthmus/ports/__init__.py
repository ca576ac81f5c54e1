"""Every door to the outside, as Protocols: what the gateway needs, never who provides it."""

from __future__ import annotations

from isthmus.ports.backend import Backend, Checker, Embedder, Workers, limits_of
from isthmus.ports.chats import ChatPage, Chats
from isthmus.ports.facts import AttemptFailed, Ended, Fact, FirstToken, Observer, Sent
from isthmus.ports.learned import Learned
from isthmus.ports.leases import Leases
from isthmus.ports.records import (
    DEFAULT_MAX_DEPTH,
    LOCAL,
    UNFINISHED,
    EventBatch,
    Held,
    ItemPage,
    Pruned,
    Signal,
    StoredResponse,
    StoredTurn,
    StoredWord,
    StoreStats,
    run_lease,
)
from isthmus.ports.requests import NamedRequest, NamedRequests, request_lease
from isthmus.ports.store import Store

__all__ = [
    "DEFAULT_MAX_DEPTH",
    "LOCAL",
    "UNFINISHED",
    "AttemptFailed",
    "Backend",
    "ChatPage",
    "Chats",
    "Checker",
    "Embedder",
    "Ended",
    "EventBatch",
    "Fact",
    "FirstToken",
    "Held",
    "ItemPage",
    "Learned",
    "Leases",
    "NamedRequest",
    "NamedRequests",
    "Observer",
    "Pruned",
    "Sent",
    "Signal",
    "Store",
    "StoreStats",
    "StoredResponse",
    "StoredTurn",
    "StoredWord",
    "Workers",
    "limits_of",
    "request_lease",
    "run_lease",
]
