"""What a session calls its pages: `turn0search2` → an address. Everybody's names are their own.

Bounded in bytes over all sessions: for a new name the longest unused session goes, and of a session that is alone too
large the oldest names. They live as long as the process: a name that is unknown is told so, and the page found anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

_ENTRY: Final = 250
"""Bytes that a name takes beside its address."""


@dataclass(slots=True)
class _Session:
    turns: int = 0
    size: int = _ENTRY
    names: OrderedDict[str, str] = field(default_factory=OrderedDict)


class Refs:
    def __init__(self, most: int) -> None:
        """`most`: bytes."""
        self._most = most
        self._held = 0
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, owner: str, session: str) -> int:
        """The number of this call within its session, from 0 on."""
        found = self._sessions.get((owner, session))
        if found is None:
            found = self._sessions[owner, session] = _Session()
            self._held += found.size
        self._sessions.move_to_end((owner, session))
        found.turns += 1
        self._make_room()
        return found.turns - 1

    def name(self, owner: str, session: str, name: str, url: str) -> None:
        found = self._sessions.get((owner, session))
        if found is None:  # crowded out meanwhile
            return
        self._drop(found, name)
        found.names[name] = url
        found.size += _weight(url)
        self._held += _weight(url)
        self._make_room()
        while self._held > self._most and len(found.names) > 1:  # it is alone by now
            self._drop(found, next(iter(found.names)))

    def find(self, owner: str, session: str, name: str) -> str | None:
        found = self._sessions.get((owner, session))
        return None if found is None else found.names.get(name)

    def _drop(self, session: _Session, name: str) -> None:
        url = session.names.pop(name, None)
        if url is not None:
            session.size -= _weight(url)
            self._held -= _weight(url)

    def _make_room(self) -> None:
        while self._held > self._most and len(self._sessions) > 1:
            _, oldest = self._sessions.popitem(last=False)
            self._held -= oldest.size


def _weight(url: str) -> int:
    return _ENTRY + len(url)
