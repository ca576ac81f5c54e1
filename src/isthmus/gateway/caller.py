"""Who asks: made once at the door, first argument of everything that the gateway does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isthmus import ports
from isthmus.bridge.types.plan import ANY_CLIENT, ClientProfile


@dataclass(frozen=True, slots=True)
class Caller:
    owner: str = ports.LOCAL
    """Whose responses these are: nobody sees another owner's."""
    key: str = ""
    """The id of the key that was shown, never the key; empty: none was needed."""
    scopes: frozenset[str] = frozenset()
    client: ClientProfile = ANY_CLIENT
    request: str = ""
    """The request that they ask it in (`req_…`)."""
    asked_at: float = 0.0
    """When all of that was there, by the gateway's clock; 0: nobody knows."""


LOCAL: Final = Caller()
