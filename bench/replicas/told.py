"""What clients of replicas were told: the end is judged by it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from bench.robustness.client import Json, Reply

UNFINISHED: Final = ("queued", "in_progress")
PATH: Final = "/v1/responses"
NOT_NOW: Final = ((503, "store_unavailable"), (503, "shutting_down"), (400, "conversation_locked"))
"""What may be told instead of an answer. A conversation is locked until the lease of a turn has ended that a dead
replica was at, or had just told the end of."""
LEFT: Final = "the gateway stopped while this response was being made"


@dataclass(slots=True)
class Told:
    ended: dict[str, bytes] = field(default_factory=dict)
    """Responses that somebody saw with their end, as the bytes of it."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Background responses that were promised, and the words they were asked with."""
    cancelled: set[str] = field(default_factory=set)
    """Those that somebody wanted to be cancelled, whether they were told so or not."""
    conversations: dict[str, list[str]] = field(default_factory=dict)
    """Ids of conversations, and the responses in them that somebody saw completed, in their order."""
    received: Counter[str] = field(default_factory=Counter)
    """Ids of responses that the receiver was told of, and how often."""
    deeds: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    """What was told instead of an answer, by its type."""
    wrong: list[str] = field(default_factory=list)

    def expect(self, true: bool, otherwise: str) -> bool:
        if not true:
            self.wrong.append(otherwise)
        return true

    def end(self, id: str, body: bytes) -> None:
        """Whoever sees it sees the same."""
        known = self.ended.setdefault(id, body)
        self.expect(known == body, f"{id} was told as {known[:300]!r}, then as {body[:300]!r}")

    def cut(self, error: BaseException) -> None:
        refused = isinstance(error, ConnectionRefusedError)
        self.errors["nobody there" if refused else "a connection that broke off"] += 1

    def refuse(self, reply: Reply, what: str) -> None:
        """Not now, in the shape that errors have; anything else is wrong."""
        error: Any = reply.json.get("error") if reply.body.startswith(b"{") else None
        code = error.get("code") if isinstance(error, dict) else None
        self.errors[f"{reply.status} {code}"] += 1
        self.expect((reply.status, code) in NOT_NOW, f"{what}: {reply.status} {reply.body[:300]!r}")


class Gone(Exception):
    """The store or the replica is away: what was begun is not gone on with."""


BROKEN: Final = (ConnectionRefusedError, ConnectionResetError, asyncio.IncompleteReadError, OSError, EOFError)


def is_kept(response: Json) -> bool:
    """Unless it was told that the store was away, and that nobody will find it again."""
    return (response["error"] or {}).get("code") != "store_unavailable"


def is_end(response: Json) -> bool:
    return response.get("status") not in (*UNFINISHED, None)
