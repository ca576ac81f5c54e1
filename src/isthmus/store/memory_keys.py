"""Keys and deeds in memory: who may ask is forgotten with all that they have made."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from isthmus.ports.keys import MOST_DEEDS, Deed, StoredKey
from isthmus.store.refusals import name_taken


class MemoryKeys:
    """`ports.keys.KeyBook`, for the store to have."""

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, StoredKey] = {}
        self._keys_mark = 0
        self._deeds: deque[Deed] = deque()
        """The latest last."""

    async def add_key(self, key: StoredKey, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        self._write_key(key, deed, most)

    async def change_key(self, key: StoredKey, deed: Deed, *, was: StoredKey, most: int = MOST_DEEDS) -> bool:
        if was.revoked_at or self._keys.get(key.id) != was:
            return False
        self._write_key(key, deed, most)
        return True

    async def keys(self) -> list[StoredKey]:
        return list(self._keys.values())

    async def keys_mark(self) -> int:
        return self._keys_mark

    async def note_deed(self, deed: Deed, *, most: int = MOST_DEEDS) -> None:
        self._note(deed, most)

    async def deeds(self, *, most: int = 100, before: int | None = None) -> list[Deed]:
        return [deed for deed in reversed(self._deeds) if before is None or deed.number < before][:most]

    def _write_key(self, key: StoredKey, deed: Deed, most: int) -> None:
        others = (each for each in self._keys.values() if each.id != key.id and each.in_force(deed.at))
        if key.in_force(deed.at) and any(each.name == key.name for each in others):
            raise name_taken(key.name)
        self._keys[key.id] = key
        self._note(deed, most)

    def _note(self, deed: Deed, most: int) -> None:
        number = self._deeds[-1].number + 1 if self._deeds else 1
        self._deeds.append(replace(deed, number=number))
        self._keys_mark += 1
        while len(self._deeds) > max(1, most):
            self._deeds.popleft()
