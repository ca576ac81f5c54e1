"""Sessions of the page that their people have ended: their cookies are worth nothing any more, at any worker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

MOST: Final = 1000
"""Of them that are remembered; a session ends by itself after half a day."""


class Ended:
    def __init__(self) -> None:
        self._words: deque[str] = deque(maxlen=MOST)
        self.tell: Callable[[str], None] = lambda word: None
        """Where other workers hear of it."""

    def __contains__(self, word: str) -> bool:
        return word in self._words

    def add(self, word: str) -> None:
        self.hear(word)
        self.tell(word)

    def hear(self, word: str) -> None:
        """It was ended elsewhere."""
        self._words.append(word)
