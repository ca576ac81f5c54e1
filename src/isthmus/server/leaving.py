"""Whether a client is gone, told by its connection: a request that waits for one answer needs no task to find out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from starlette.types import Scope

LEAVING: Final = "isthmus.leaving"
"""Where in a scope its connection says so."""


class Leaving:
    """One request's client. `then` is called when it goes; at once, where it is gone already."""

    __slots__ = ("_then", "gone")

    def __init__(self) -> None:
        self.gone = False
        self._then: Callable[[], None] | None = None

    def then(self, call: Callable[[], None] | None) -> None:
        """`None`: it does not matter any more."""
        self._then = call
        if self.gone and call is not None:
            call()

    def tell(self) -> None:
        self.gone = True
        if self._then is not None:
            self._then()


def leaving_of(scope: Scope) -> Leaving | None:
    """`None`: this server does not tell; whoever wants to know waits for `http.disconnect`."""
    found: Leaving | None = scope.get(LEAVING)
    return found
