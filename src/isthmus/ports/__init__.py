"""Every door to the outside, as Protocols: what the gateway needs, never who provides it."""

from __future__ import annotations

from isthmus.ports.backend import Backend, Checker, Workers
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
    "APPENDING",
    "DEFAULT_MAX_DEPTH",
    "LOCAL",
    "UNFINISHED",
    "AttemptFailed",
    "Backend",
    "ChatPage",
    "Chats",
    "Checker",
    "ConversationTurns",
    "Conversations",
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
    "StoredConversation",
    "StoredResponse",
    "StoredTurn",
    "StoredWord",
    "Workers",
    "conversation_lease",
    "conversation_locked",
    "request_lease",
    "run_lease",
]
