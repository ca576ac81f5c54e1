"""Every door to the outside, as Protocols: what the gateway needs, never who provides it."""

from __future__ import annotations

from isthmus.ports.backend import Backend, Checker, Drawer, Embedder, Visits, Workers, limits_of
from isthmus.ports.chats import ChatPage, Chats
from isthmus.ports.conversations import (
    APPENDING,
    Conversations,
    ConversationTurns,
    StoredConversation,
    conversation_lease,
    conversation_locked,
)
from isthmus.ports.facts import AttemptFailed, Ended, Fact, FirstToken, Observer, Sent
from isthmus.ports.learned import Learned
from isthmus.ports.leases import Leases
from isthmus.ports.outbox import Backlog, Delivery, Messenger, Notice, Outbox, Refused
from isthmus.ports.records import (
    ANY_SIZE,
    DEFAULT_MAX_DEPTH,
    EXPIRED_AT_ONCE,
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
    "ANY_SIZE",
    "APPENDING",
    "DEFAULT_MAX_DEPTH",
    "EXPIRED_AT_ONCE",
    "LOCAL",
    "UNFINISHED",
    "AttemptFailed",
    "Backend",
    "Backlog",
    "ChatPage",
    "Chats",
    "Checker",
    "ConversationTurns",
    "Conversations",
    "Delivery",
    "Drawer",
    "Embedder",
    "Ended",
    "EventBatch",
    "Fact",
    "FirstToken",
    "Held",
    "ItemPage",
    "Learned",
    "Leases",
    "Messenger",
    "NamedRequest",
    "NamedRequests",
    "Notice",
    "Observer",
    "Outbox",
    "Pruned",
    "Refused",
    "Sent",
    "Signal",
    "Store",
    "StoreStats",
    "StoredConversation",
    "StoredResponse",
    "StoredTurn",
    "StoredWord",
    "Visits",
    "Workers",
    "conversation_lease",
    "conversation_locked",
    "limits_of",
    "request_lease",
    "run_lease",
]
