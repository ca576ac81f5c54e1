"""What is not as it was written: how it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Damage:
    kind: Literal["file", "response", "events", "conversation", "key"]
    """`file`: its structure; what lies on the damaged pages can be neither read nor moved."""
    id: str
    """Of the response, the conversation or the key; empty where it is the file."""
    reason: str
    set_aside: bool = False


@dataclass(frozen=True, slots=True)
class Examined:
    responses: int
    conversations: int
    damage: tuple[Damage, ...]

    @property
    def sound(self) -> bool:
        """Whether everything that is left is as it was written."""
        return all(each.set_aside for each in self.damage)
