"""The tools of a request as a list that remembers: agents send the same ones with every turn.

In: the `tools` of a request. Out: a `Toolset` with the same tools, the one that an earlier request of that text had.
What is found out about tools (what they weigh, what becomes of them for a model, how a Response shows them) is kept on
it by whoever found it out, so that only the first of many requests pays for it. Nobody can tell but by the clock: all
of it follows from the text and from what it is kept under, and nobody ever changes a tool. They are few, of small texts
(4 MB of them at most); those that were asked for the longest ago go first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from isthmus.protocol.json import JsonObject

MOST_KEPT: Final = 32
MOST_TEXT: Final = 131_072
"""Bytes of the tools of one request; longer ones are looked at anew each time."""
MOST_MADE: Final = 64
"""Things that are kept on one list under names of their own: one for each kind of model that it is sent to."""

_T = TypeVar("_T")


class Weight(msgspec.Struct, frozen=True):
    """What tools add to a request, for its limits."""

    tools: int
    """Those inside of namespaces included."""
    values: int
    depth: int


class Toolset(list[JsonObject]):
    """Tools of which nothing is ever changed, and what is known of them."""

    __slots__ = ("_made", "weight")

    def __init__(self, tools: list[JsonObject]) -> None:
        super().__init__(tools)
        self.weight: Weight | None = None
        """Known once they were found to be well-formed."""
        self._made: dict[Hashable, tuple[tuple[object, ...], Any]] = {}

    def once(self, name: Hashable, make: Callable[[], _T], *of: object) -> _T:
        """What `make` makes of these tools, made once for each name and the very objects that it is made `of`."""
        key = (name, *map(id, of))
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            found = self._made[key] = of, make()  # what is held on to keeps its id
        made: _T = found[1]
        return made


NO_TOOLS: Final = Toolset([])
"""Of a request without any."""


def find_toolset(tools: Any, *, as_text: bool) -> Toolset | None:
    """The list that remembers, for tools that came `as_text`. Others may hold what JSON has no word for: for those it
    must be equal."""
    if type(tools) is not list or not tools:
        return None
    try:
        text = _encode(tools)
    except (TypeError, ValueError, RecursionError):
        return None
    if len(text) > MOST_TEXT:
        return None
    found = toolset_of(text)
    return found if as_text or found == tools else None


_encode: Final = msgspec.json.Encoder().encode


@lru_cache(MOST_KEPT)
def toolset_of(text: bytes) -> Toolset:
    return Toolset(msgspec.json.decode(text))
