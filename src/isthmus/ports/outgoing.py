"""What goes along with a request to an upstream besides the request itself: the trace that it is sent in, and what
keeps a client's turn at one place.

The latter is `x-codex-turn-state`: given with an answer, shown with whatever follows in that turn. It says which
provider answered, at which of its places, and what that upstream wants to be shown itself. All of it is in the word,
so that any worker or replica understands it. A word that cannot be read is not ours: it is ignored, and the turn goes
on as if it had just begun.
"""

from __future__ import annotations

import base64
import binascii
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

import msgspec

OUTGOING: Final[ContextVar[str]] = ContextVar("isthmus.traceparent", default="")
"""The `traceparent` for whoever is asked next in this task; empty: none. Set by whoever makes spans, when it hears that
something is sent."""
TURN_STATE: Final = "x-codex-turn-state"
LONGEST_STATE: Final = 8_192
"""Characters of it."""
_OURS: Final = "ist1."
NOWHERE: Final = -1


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """Where a turn is."""

    provider: str
    place: int = NOWHERE
    """Which of its places; `NOWHERE`: it has but one."""
    word: str = ""
    """What the upstream gave itself."""


@dataclass(slots=True)
class TurnState:
    """Of one request: what its client showed, and what it is to be given."""

    shown: Kept | None = None
    given: Kept | None = None

    def place_at(self, provider: str) -> int:
        return self.shown.place if self.shown is not None and self.shown.provider == provider else NOWHERE

    def word_for(self, provider: str) -> str:
        """Only for the one that gave it."""
        return self.shown.word if self.shown is not None and self.shown.provider == provider else ""

    def answered(self, provider: str, word: str) -> None:
        """By an upstream, with what it wants to be shown; an earlier word of the same turn counts for as long as it
        gives no other."""
        word = word if _may_travel(word) else ""
        self.given = Kept(provider, word=word or self.word_for(provider))

    def answered_at(self, place: int) -> None:
        if self.given is not None:
            self.given = msgspec.structs.replace(self.given, place=place)


TURN: Final[ContextVar[TurnState | None]] = ContextVar("isthmus.turn_state", default=None)
"""Of the request that this task serves."""


def read_state(spelt: str) -> Kept | None:
    if not spelt.startswith(_OURS) or len(spelt) > LONGEST_STATE:
        return None
    try:
        data = base64.urlsafe_b64decode(spelt.removeprefix(_OURS).encode())
        kept = msgspec.json.decode(data, type=Kept)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    return kept if _may_travel(kept.word) else None


def spell_state(kept: Kept) -> str:
    """Empty: there is nothing to keep to."""
    if kept.place == NOWHERE and not kept.word:
        return ""
    return _OURS + base64.urlsafe_b64encode(msgspec.json.encode(kept)).decode()


def _may_travel(word: str) -> bool:
    return len(word) <= LONGEST_STATE // 2 and word.isascii() and (word.isprintable() or not word)
