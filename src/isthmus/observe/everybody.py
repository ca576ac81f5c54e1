"""Several who hear the same facts, as one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from isthmus.log import tell
from isthmus.ports import Fact, Observer

log = logging.getLogger("isthmus.observe")


Hear = Callable[[Any], None]


@runtime_checkable
class Choosy(Observer, Protocol):
    """One who does not listen to everything."""

    def ear(self, kind: type[Any]) -> Hear | None:
        """What hears facts of this kind; always the same. `None`: nothing does."""


class Everybody:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        self._hearing: dict[type[Any], list[tuple[Observer, Hear]]] = {}
        """A kind of fact → who hears it, and with what: found out once."""
        self._blamed: set[str] = set()

    def tell(self, fact: Fact) -> None:
        hearing = self._hearing.get(type(fact))
        if hearing is None:
            hearing = self._hearing[type(fact)] = self._who_hears(type(fact))
        for observer, hear in hearing:
            try:
                hear(fact)
            except Exception as error:  # whoever watches must not break what is watched
                self._blame(observer, error)

    def _who_hears(self, kind: type[Any]) -> list[tuple[Observer, Hear]]:
        ears = [(each, each.ear(kind) if isinstance(each, Choosy) else each.tell) for each in self._observers]
        return [(observer, ear) for observer, ear in ears if ear is not None]

    def _blame(self, observer: Observer, error: Exception) -> None:
        """Once each: it would be told with every request."""
        name = f"{type(observer).__name__}: {type(error).__name__}"
        if name not in self._blamed:
            self._blamed.add(name)
            tell(log, "error", "observer.broken", observer=type(observer).__name__, trace=error)
