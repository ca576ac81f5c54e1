"""How a stream was told, without its words: enough to tell it again with the same events and the same numbers.

A foreground stream is not stored event by event: that would be ten times its answer. Its outline is two numbers for
each event (the item that it belongs to, and the length of its delta); with the items of the response they make the
same events again, so that a client can read on behind the last one it saw.
"""

from __future__ import annotations

import zlib
from array import array
from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import methodcaller
from typing import Any, Final

from isthmus.bridge.assemble.retell import replay_events
from isthmus.protocol.events import Event
from isthmus.protocol.response import FinishedResponse

MAX_EVENTS: Final = 200_000
"""Longer streams have no outline; they are told anew, from their beginning only."""
_WORD: Final = 0xFFFF_FFFF
_place: Final = methodcaller("get", "output_index", -1)
_delta: Final = methodcaller("get", "delta", range(_WORD))
"""What has none is as long as no delta is."""
_one_more: Final = (1).__add__
_in_a_word: Final = _WORD.__and__


class Outline:
    __slots__ = ("_lengths", "_places")

    def __init__(self) -> None:
        self._places = array("i")
        self._lengths = array("I")

    def add(self, events: Sequence[Event]) -> None:
        """Every delta of every stream comes by here: none of a batch costs an instruction."""
        self._places.extend(map(_place, events))
        self._lengths.extend(map(len, map(_delta, events)))

    def pack(self) -> bytes:
        """Both of each event, one more than they are: 0 is none."""
        if len(self._places) > MAX_EVENTS:
            return b""
        pairs = zip(self._places, self._lengths, strict=True)
        numbers = map(_in_a_word, map(_one_more, chain.from_iterable(pairs)))
        return zlib.compress(array("I", numbers).tobytes(), 1)


def tell_as_told(response: FinishedResponse, outline: bytes, *, specified: bool = False) -> list[Event] | None:
    """The events of a stream once more; `None` where the outline does not fit the response."""
    numbers = array("I")
    try:
        numbers.frombytes(zlib.decompress(outline))
    except (zlib.error, ValueError):
        return None
    created, progress, *middle, terminal = replay_events(response, specified=specified)
    items: dict[int, deque[Any]] = {}
    for event in middle:
        told: Any = event
        items.setdefault(told["output_index"], deque()).append(dict(told))
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    events: list[Any] = []
    for number, (place, length) in enumerate(pairs):
        if place == 0:
            snapshot = created if number == 0 else terminal if number == len(pairs) - 1 else progress
            events.append({**snapshot, "sequence_number": number})
            continue
        found = _next(items.get(place - 1) or deque(), length)
        if found is None:
            return None
        events.append({**found, "sequence_number": number})
    left = any(event.get("delta") != "" for waiting in items.values() for event in waiting)
    return None if left or not events or events[-1]["type"] != terminal["type"] else events


def _next(waiting: deque[Any], length: int) -> Any:
    """The next event of an item: a piece of its delta, or the next one that is none."""
    if length == 0:
        at = next((index for index, event in enumerate(waiting) if "delta" not in event), None)
        if at is None or any(event["delta"] for event in _before(waiting, at) if not _may_follow(waiting[at])):
            return None
        found = waiting[at]
        del waiting[at]
        return found
    if not waiting or "delta" not in waiting[0]:
        return None
    text, wanted = waiting[0]["delta"], length - 1
    if len(text) < wanted:
        return None
    piece = {**waiting[0], "delta": text[:wanted]}
    if len(text) == wanted:
        waiting.popleft()
    else:
        waiting[0] = {**waiting[0], "delta": text[wanted:]}
    if "logprobs" in piece:
        piece["logprobs"], rest = _split(piece["logprobs"], wanted)
        if waiting and "logprobs" in waiting[0] and len(text) != wanted:
            waiting[0]["logprobs"] = rest
    return piece


def _before(waiting: deque[Any], at: int) -> Iterable[Any]:
    return (waiting[index] for index in range(at))


def _may_follow(event: Any) -> bool:
    """A citation may come in the middle of its text; nothing else comes before the text is whole."""
    return str(event["type"]) == "response.output_text.annotation.added"


def _split(logprobs: Sequence[Any], length: int) -> tuple[list[Any], list[Any]]:
    """Those of the tokens within so many characters, and the rest."""
    used = 0
    for index, entry in enumerate(logprobs):
        if used >= length:
            return list(logprobs[:index]), list(logprobs[index:])
        used += len(entry["token"])
    return list(logprobs), []
