"""What was learned about models: from what their servers refused, and from what these say of themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from isthmus.ports.records import StoredWord

if TYPE_CHECKING:  # only words here: a store must not load the whole bridge
    from isthmus.bridge.types.plan import Lesson


class Learned(Protocol):
    async def learn(self, lesson: Lesson, *, since: float = 0.0, most: int = 1000) -> None:
        """Keep a lesson; a later one on the same value of the same field of the same model takes its place.

        Lessons from before `since` go, and beyond `most` of them the oldest.
        """

    async def lessons(self, provider: str, model: str, *, since: float = 0.0) -> list[Lesson]:
        """What was learned about a model since then, oldest first."""

    async def hear(self, word: StoredWord, *, since: float = 0.0, most: int = 200) -> None:
        """Keep what a server said; a later word of the same place takes its place.

        Words from before `since` go, and beyond `most` of them the oldest.
        """

    async def words(self, *, since: float = 0.0) -> list[StoredWord]:
        """What servers said since then, oldest first."""
