"""Whether the server can be used, noted once for everybody.

Whoever cannot reach it reports that here, and is not the only one to find out: `check` tells everybody at once. One
thread tries again every moment (`changes`), and takes the note away when a connection stands and can be written to.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from isthmus.errors import StoreUnavailable
from isthmus.log import tell
from isthmus.store.postgres.connect import Connection, Options, connect
from isthmus.store.postgres.faults import advice, unavailable, words

log = logging.getLogger("isthmus.store")


@dataclass(frozen=True, slots=True)
class Trouble:
    reason: str
    advice: str


class Medium:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.name = options.address.name
        self.wake: Callable[[], None] = lambda: None
        """Calls the thread that tries again."""
        self._noting = threading.Condition()
        self._trouble: Trouble | None = None

    @property
    def troubled(self) -> bool:
        return self._trouble is not None

    def check(self) -> None:
        if (trouble := self._trouble) is not None:
            raise unavailable(trouble.reason, trouble.advice, self.name)

    def wait(self, seconds: float) -> None:
        """Until it can be used again, so long at the most: a server that is restarted is back in a moment. From a
        thread of ours, never on the loop."""
        with self._noting:
            self._noting.wait_for(lambda: self._trouble is None, max(0.0, seconds))
        self.check()

    def connect(self) -> Connection:
        """A new connection; that there is none to be had is noted."""
        try:
            return connect(self.options)
        except psycopg.Error as error:
            raise self.report(Trouble(words(error), advice(error))) from error

    def report(self, trouble: Trouble) -> StoreUnavailable:
        with self._noting:
            known, self._trouble = self._trouble, trouble
        if known is None:
            self.wake()
        if known != trouble:
            tell(log, "error", "store.unavailable", store=self.name, reason=trouble.reason, next=trouble.advice)
        return unavailable(trouble.reason, trouble.advice, self.name)

    def recovered(self) -> None:
        with self._noting:
            known, self._trouble = self._trouble, None
            self._noting.notify_all()
        if known is not None:
            tell(log, "warning", "store.available", store=self.name, after=known.reason)
