"""Who asks: made once at the door, first argument of everything that the gateway does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isthmus.bridge.types.client import ANY_CLIENT, ClientProfile

LOCAL_OWNER: Final = "local"
"""Whose everything is where there are no keys, and whose everything stays when keys are switched on."""


@dataclass(frozen=True, slots=True)
class Caller:
    owner: str = LOCAL_OWNER
    """Whose responses these are: nobody sees another owner's."""
    key: str = ""
    """The id of the key that was shown, never the key; empty: none was needed."""
    scopes: frozenset[str] = frozenset()
    client: ClientProfile = ANY_CLIENT


LOCAL: Final = Caller()
