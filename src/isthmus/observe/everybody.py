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
        self._hearing: dict[type[Any], list[Hear]] = {}
        """A kind of fact → what hears it: found out once."""
        self._blamed: set[str] = set()

    def tell(self, fact: Fact) -> None:
        hearing = self._hearing.get(type(fact))
        for hear in self._who_hears(type(fact)) if hearing is None else hearing:
            try:
                hear(fact)
            except Exception as error:  # whoever watches must not break what is watched, nor keep others from it
                self._blame(hear, error)

    def _who_hears(self, kind: type[Any]) -> list[Hear]:
        ears = [each.ear(kind) if isinstance(each, Choosy) else each.tell for each in self._observers]
        hearing = self._hearing[kind] = [ear for ear in ears if ear is not None]
        return hearing

    def _blame(self, hear: Hear, error: Exception) -> None:
        """Once each: it would be told with every request."""
        observer = getattr(hear, "__self__", hear)
        name = f"{type(observer).__name__}: {type(error).__name__}"
        if name not in self._blamed:
            self._blamed.add(name)
            tell(log, "error", "observer.broken", observer=type(observer).__name__, trace=error)
