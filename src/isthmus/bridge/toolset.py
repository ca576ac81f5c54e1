"""The tools of a request as a list that remembers: agents send the same ones with every turn.

In: the `tools` of a request. Out: a `Toolset` with the same tools, the one that an earlier request of that text had.
What is found out about tools (what they weigh, what becomes of them for a model, how a Response shows them) is kept on
it by whoever found it out, so that only the first of many requests pays for it. Nobody can tell but by the clock: all
of it follows from the text and from what it is kept under, and nobody ever changes a tool. They are few, of small texts
(4 MB of them at most); those that were asked for the longest ago go first.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from itertools import chain, compress, repeat
from operator import add, contains, itemgetter
from typing import Any, Final, TypeVar

import msgspec

from isthmus.protocol.json import JsonObject

MOST_KEPT: Final = 32
MOST_TEXT: Final = 131_072
"""Bytes of the tools of one request; longer ones are not kept."""
MOST_MADE: Final = 64
"""Things that are kept on one list under names of their own: one for each kind of model that it is sent to."""
_SHALLOW: Final = 64
"""Brackets of a tool of which nobody needs to know how they are nested."""
_ANY: Final = 1 << 62

_T = TypeVar("_T")


class Weight(msgspec.Struct, frozen=True):
    """What tools add to a request, for its limits."""

    tools: int
    """Those inside of namespaces included."""
    values: int
    """No fewer than they hold."""
    depth: int
    """No less than it is."""


class Toolset(list[JsonObject]):
    """Tools of which nothing is ever changed, and what is known of them."""

    __slots__ = ("_made", "sound", "weight")

    def __init__(self, tools: Iterable[JsonObject] = ()) -> None:
        super().__init__(tools)
        self.weight: Weight | None = None
        self.sound = False
        """Whether they were found to be well-formed."""
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
    if type(tools) is not list or not tools or not all(map(isinstance, tools, repeat(dict))):
        return None
    try:
        texts = [*map(_encode, tools)]
    except (TypeError, ValueError, RecursionError):
        return None
    text = b",".join(texts)
    found = toolset_of(text) if len(text) <= MOST_TEXT else Toolset()
    if not found:
        # What came as text is nobody else's. Whoever comes at the same time puts the same in.
        found[:] = tools if as_text else map(msgspec.json.decode, texts)
        found.weight = _weigh(found, texts, text)
    return found if as_text or found == tools else None


_encode: Final = msgspec.json.Encoder().encode


@lru_cache(MOST_KEPT)
def toolset_of(text: bytes) -> Toolset:
    """The list for tools of this text; a new one is still empty."""
    return Toolset()


def _weigh(tools: Toolset, texts: list[bytes], text: bytes) -> Weight:
    """By their texts, where that is enough: every value stands behind a comma or an opening bracket, and nothing is
    deeper than it has brackets."""
    count = count_tools([tools], _ANY)
    brackets = [*map(add, map(bytes.count, texts, repeat(b"{")), map(bytes.count, texts, repeat(b"[")))]
    if max(brackets) < _SHALLOW:
        return Weight(count, 1 + text.count(b",") + sum(brackets), 1 + max(brackets))
    below: list[Any] = tools
    values = depth = 0
    while below:
        values, depth = values + len(below), depth + 1
        lists = compress(below, map(isinstance, below, repeat(list)))
        below = [*chain.from_iterable(map(dict.values, objects_in(below))), *chain.from_iterable(lists)]
    return Weight(count, values, depth + 1)


def count_tools(lists: list[Any], most: int) -> int:
    """Those in lists of tools, and inside namespaces; stops counting above `most`."""
    count = 0
    while lists and count <= most:
        given = lists.pop()
        if type(given) is Toolset and given.weight is not None:
            count += given.weight.tools
            continue
        tools = objects_in(given)
        count += len(tools)
        lists += map(_tools_in, compress(tools, map(contains, tools, repeat("tools"))))
    return count


def objects_in(given: Any) -> list[JsonObject]:
    return [*compress(given, map(isinstance, given, repeat(dict)))] if isinstance(given, list) else []


_tools_in: Final = itemgetter("tools")
