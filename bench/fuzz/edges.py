"""Cases at the edge of each bound, to begin every campaign with: one that just keeps it, and one that just does not.

What chance finds depends on what earlier cases reached, so on the seed and on the load of the machine. A bound is known
beforehand: whether it is kept is asked of every campaign, whatever its seed, within its first hundred cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bench.fuzz.bounds import ANSWER_AROUND, ANSWER_READ, measure
from bench.fuzz.case import WAITS, Case, Json
from bench.fuzz.grammar import chunk, error_shapes
from bench.fuzz.house import MAX_BODY

_MODEL: Final = "up/model"
_SAID: Final = (chunk({"content": "Rome"}), chunk({}, "stop"), b"data: [DONE]\n\n")
_LARGEST: Final = 6_000
"""Of a bound that is looked at: a larger one takes cases that say nothing else, and much time."""
_ADDED: Final = 10
"""More than the fields and values that the Chat door adds to a request before they are counted."""
_LONG: Final = "name/" * 10_000
QUOTED: Final = ("model", "previous_response_id", "tool_choice", "truncation")
"""Names that somebody may quote when they are refused."""


@dataclass(frozen=True, slots=True)
class Edge:
    bound: str
    """The setting of `[limits]`, or what the code itself bounds."""
    kept: bool
    """Whether the case keeps it."""
    case: Case


def edges(limits: Mapping[str, int]) -> Iterator[Edge]:
    """For every bound that a small case can reach; always the same ones, in the same order."""
    for setting, asking in ASKED.items():
        if (most := limits[setting]) <= _LARGEST:
            for chat in (False, True):
                for size in (most - _ADDED * chat, most + 1):
                    yield Edge(setting, size <= most, Case(chat, asking(chat, size), _SAID))
    for setting, answering in ANSWERED.items():
        if (most := limits[setting]) <= 10 * _LARGEST:
            for chat in (False, True):
                for kept in (True, False):
                    yield Edge(setting, kept, Case(chat, {**_plain(chat), "stream": True}, answering(most, kept)))
    yield from _edges_of_code()


def _edges_of_code() -> Iterator[Edge]:
    """What is no setting, or not one of `[limits]`."""
    for chat in (False, True):
        room = MAX_BODY - len(Case(chat, {**_plain(chat), "user": ""}).raw())
        for over in (0, 1):
            yield Edge("max_body", not over, Case(chat, {**_plain(chat), "user": "u" * (room + over)}, _SAID))
        for name in QUOTED:
            yield Edge("quoted", False, Case(chat, {**_plain(chat), name: _LONG}, _SAID))
        for status in (400, 429, 500):
            for shape in error_shapes("no " * 20_000, "x"):
                yield Edge("errors", False, Case(chat, _plain(chat), (shape,), status))
        for wait in WAITS:
            refusal = (error_shapes("later", "rate_limit_exceeded")[0],)
            yield Edge("waits", False, Case(chat, _plain(chat), refusal, 429, {"Retry-After": wait}))


def _plain(chat: bool) -> Json:
    return {"model": _MODEL, **_asked(chat, [{"role": "user", "content": "Which city?"}])}


def _asked(chat: bool, items: list[Json]) -> Json:
    return {"messages" if chat else "input": items}


def _fields(chat: bool, count: int) -> Json:
    plain = _plain(chat)
    return {**plain, **{f"field{number}": 0 for number in range(count - len(plain))}}


def _items(chat: bool, count: int) -> Json:
    return {"model": _MODEL, **_asked(chat, [{"role": "user", "content": "hi"}] * count)}


def _parts(chat: bool, count: int) -> Json:
    part = {"type": "text" if chat else "input_text", "text": "hi"}
    return {"model": _MODEL, **_asked(chat, [{"role": "user", "content": [part] * count}])}


def _tools(chat: bool, count: int) -> Json:
    return {**_plain(chat), "tools": [_tool(chat, f"f{number}", {}) for number in range(count)]}


def _values(chat: bool, count: int) -> Json:
    def of(padding: int) -> Json:
        return {**_plain(chat), "tools": [_tool(chat, "f", {"enum": [0] * padding})]}

    return of(count - measure(of(0))[0])


def _depth(chat: bool, levels: int) -> Json:
    def of(padding: int) -> Json:
        schema: Json = {"type": "string"}
        for _ in range(padding):
            schema = {"type": "array", "items": schema}
        return {**_plain(chat), "tools": [_tool(chat, "f", schema)]}

    return of(levels - measure(of(0))[1])


def _tool(chat: bool, name: str, schema: Json) -> Json:
    function = {"name": name, "parameters": schema}
    return {"type": "function", "function": function} if chat else {"type": "function", **function}


ASKED: Final[dict[str, Callable[[bool, int], Json]]] = {
    "max_fields": _fields,
    "max_items": _items,
    "max_parts": _parts,
    "max_tools": _tools,
    "max_values": _values,
    "max_depth": _depth,
}
"""A request of exactly so many, by the setting that bounds them."""


def _chunks(most: int, kept: bool) -> tuple[Any, ...]:
    """Beyond it are as many as the last read may bring, for those are told before they are counted."""
    said = Case(False, {}, _SAID).pieces()
    more = 0 if kept else ANSWER_READ // len(said[0]) + 2
    return (*(_SAID[0],) * (most - 1 + more), *_SAID[1:])


def _answer(most: int, kept: bool) -> tuple[Any, ...]:
    """In ten chunks, so that it is their length that counts."""
    size = most // 2 if kept else most + ANSWER_READ + 12 * ANSWER_AROUND
    return (*(chunk({"content": "x" * (size // 10 + 1)}),) * 10, *_SAID[1:])


ANSWERED: Final[dict[str, Callable[[int, bool], tuple[Any, ...]]]] = {"max_chunks": _chunks, "max_answer": _answer}
"""The chunks of an answer that keeps the setting, or does not."""
