"""How much runs at the same time, for each that is limited in it."""

from __future__ import annotations

from typing import Protocol


class Places(Protocol):
    async def enter(self, name: str, id: str, most: int) -> bool:
        """Take a place, if one is free. A process that dies gives its places back, at once or after a while."""

    async def leave(self, name: str, id: str) -> None: ...


class PlacesHere:
    """In this process."""

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}

    async def enter(self, name: str, id: str, most: int) -> bool:
        taken = self._taken.setdefault(name, set())
        if len(taken) >= most:
            return False
        taken.add(id)
        return True

    async def leave(self, name: str, id: str) -> None:
        taken = self._taken.get(name)
        if taken is not None:
            taken.discard(id)
            if not taken:
                del self._taken[name]
