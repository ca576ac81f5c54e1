"""Several who hear the same facts, as one."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from isthmus.log import tell
from isthmus.ports import Fact, Observer

log = logging.getLogger("isthmus.observe")


class Everybody:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)
        self._blamed: set[str] = set()

    def tell(self, fact: Fact) -> None:
        for observer in self._observers:
            try:
                observer.tell(fact)
            except Exception as error:  # whoever watches must not break what is watched
                self._blame(observer, error)

    def _blame(self, observer: Observer, error: Exception) -> None:
        """Once each: it would be told with every request."""
        name = f"{type(observer).__name__}: {type(error).__name__}"
        if name not in self._blamed:
            self._blamed.add(name)
            tell(log, "error", "observer.broken", observer=type(observer).__name__, trace=error)
