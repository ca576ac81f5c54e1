"""Requests that their clients named (`Idempotency-Key`), so that asking again gives what was made the first time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from isthmus.ports.records import LOCAL


@dataclass(frozen=True, slots=True)
class NamedRequest:
    digest: bytes
    """Of all that was asked for: under the same name it must be the same."""
    id: str
    """What is made for it: a response, or a chat completion."""
    at: float


def request_lease(name: str) -> str:
    """The name of the lease that says: somebody is at this request."""
    return f"request:{name}"


class NamedRequests(Protocol):
    async def name_request(self, name: str, request: NamedRequest, *, owner: str = LOCAL, since: float = 0.0) -> None:
        """Keep what is made for a request; a later one takes the place of an earlier one of the same name.

        Some of those from before `since` go.
        """

    async def named_request(self, name: str, *, owner: str = LOCAL, since: float = 0.0) -> NamedRequest | None:
        """What was kept under this name since then."""
