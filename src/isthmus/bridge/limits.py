"""How much one request may ask us to do: counted before anything is built of it, in time linear in its bytes.

In: the text of a request, its values, or the stored items that it refers to. Out: nothing, or a 400 that names the
limit, its setting and its value. Planning costs some microseconds for each item, part and tool, so these bounds are
what bounds the time that one request can take from all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, compress, repeat
from operator import methodcaller
from typing import Any, Final, TypeVar

import msgspec

from isthmus.bridge.toolset import Toolset, Weight, count_tools, objects_in
from isthmus.errors import REQUEST_TOO_LARGE, RequestRefused
from isthmus.protocol.json import JsonObject, count_marks, count_values

SMALL: Final = 65_536
"""Bytes of a text that need not be counted: the values that they may hold are read in a few milliseconds."""
HEAVY_TEXT: Final = 262_144
"""Bytes of a text that is read aside: nobody knows yet whether it is one image or a hundred thousand lists."""
HEAVY_BYTES: Final = 1_000_000
HEAVY_VALUES: Final = 20_000
"""From here on a request is worked on aside (`is_heavy`): it takes more than about 20 ms."""

_FEW_TEXT: Final = 4_096
"""Bytes of a text that may hold few values: to look for commas in a long one takes longer than to count its values."""
_AT_ONCE: Final = 64
"""Stored items that are counted as one text."""


class RequestLimits(msgspec.Struct, frozen=True):
    """Each is the setting of its name under `[limits]`, where it is described."""

    max_values: int = 200_000
    max_depth: int = 100
    max_fields: int = 200
    max_items: int = 10_000
    max_parts: int = 20_000
    max_tools: int = 2_000
    max_input: int = 50_000_000
    max_wide_text: int = 10_485_760
    max_inputs: int = 2_048
    max_input_tokens: int = 300_000


class AnswerLimits(msgspec.Struct, frozen=True):
    """How much of one upstream answer is read; likewise."""

    max_answer: int = 16_000_000
    max_chunks: int = 500_000
    max_values: int = 200_000
    max_vectors: int = 64_000_000
    max_images: int = 64_000_000


_T = TypeVar("_T", bound=msgspec.Struct)


def take_limits(kind: type[_T], section: object) -> _T:
    """The settings of these names."""
    return kind(**{name: getattr(section, name) for name in kind.__struct_fields__})


_ANY: Final = 1 << 62
DEFAULT_ANSWER: Final = AnswerLimits()
DEFAULT_LIMITS: Final = RequestLimits()
OWN_LIMITS: Final = RequestLimits(_ANY, DEFAULT_LIMITS.max_depth, _ANY, _ANY, _ANY, _ANY, _ANY, _ANY)
"""For requests of the process itself, and those that were let in before: only the depth matters, for the stack."""


def is_heavy(size: int, values: int = 0) -> bool:
    """Whether a request of so many bytes, or values, takes longer than others should have to wait."""
    return size > HEAVY_BYTES or values > HEAVY_VALUES


def check_text(raw: bytes | bytearray, limits: RequestLimits) -> None:
    """Before it is decoded: thirteen million empty lists are 40 MB, and six seconds."""
    if len(raw) > SMALL:
        _refuse_above(count_values(raw, limits.max_values), "max_values", limits, "holds more than {} values")


def few_values(raw: object, limits: RequestLimits) -> int:
    """How many values a text holds at most, where these are so few that no limit of `check_body` can be met by them,
    however they are arranged; else 0. Most requests are of that kind."""
    if not isinstance(raw, bytes | bytearray) or len(raw) > _FEW_TEXT:
        return 0
    most = 1 + count_marks(raw)
    return most if most <= _least(limits) else 0


@lru_cache(64)
def _least(limits: RequestLimits) -> int:
    counts = (limits.max_values, limits.max_depth, limits.max_fields)
    return min(*counts, limits.max_items, limits.max_parts, limits.max_tools)


def too_wide(limits: RequestLimits) -> RequestRefused:
    words = "holds a text of more than {} characters, one of them outside the BMP (an emoji, say)"
    return _refusal("max_wide_text", limits, words, None)


def check_body(body: JsonObject, limits: RequestLimits) -> int:
    """Counts of whatever costs more than its bytes. The answer is the number of its values: each item, part and tool is
    one, so that these are told apart only where there are many."""
    if len(body) > limits.max_fields:
        raise _refusal("max_fields", limits, "has more than {} fields", None)
    weight, values = _weight(body.get("tools")), 0
    if weight is not None and weight.depth < limits.max_depth:
        values = weight.values + _count_values({**body, "tools": None}, limits)
    if not values or values > limits.max_values:  # also where tools may weigh less than they seem to
        values = _count_values(body, limits)
    if values > min(limits.max_items, limits.max_parts, limits.max_tools, limits.max_values):
        _check_kinds(body, limits)
        _refuse_above(values, "max_values", limits, "holds more than {} values")
    return values


def _check_kinds(body: JsonObject, limits: RequestLimits) -> None:
    items = objects_in(body.get("input"))
    if len(items) > limits.max_items:
        raise _refusal("max_items", limits, "has more than {} items", "input")
    fields = [*chain.from_iterable(map(dict.values, items))]
    if sum(map(len, compress(fields, map(isinstance, fields, repeat(list))))) > limits.max_parts:
        raise _refusal("max_parts", limits, "has items with more than {} parts", "input")
    if _count_tools(body, items, limits.max_tools) > limits.max_tools:
        raise _refusal("max_tools", limits, "has more than {} tools", "tools")


def check_texts(inputs: Sequence[object], limits: RequestLimits) -> None:
    """What is to become vectors: so many texts, and of those that come as tokens so many numbers."""
    _refuse_above(len(inputs), "max_inputs", limits, "has more than {} inputs", "input")
    tokens = sum([len(each) for each in inputs if isinstance(each, list)])
    _refuse_above(tokens, "max_input_tokens", limits, "has more than {} tokens", "input")


def check_input(items: Sequence[bytes], given: int, limits: RequestLimits) -> int:
    """Stored items that a request leads to, in front of `given` of its own: they count as if it had brought them. The
    answer is the number of their values."""
    _refuse_above(given + len(items), "max_items", limits, "leads to more than {} items", "input")
    check_stored(sum(map(len, items)), limits)
    values = 0
    for start in range(0, len(items), _AT_ONCE):
        values += count_values(b",".join(items[start : start + _AT_ONCE]), limits.max_values)
        _refuse_above(values, "max_values", limits, "leads to items of more than {} values", "input")
    return values


def check_stored(size: int, limits: RequestLimits) -> None:
    """Bytes of stored items that a request leads to."""
    _refuse_above(size, "max_input", limits, "leads to items of more than {} bytes", "input")


def _lists(given: list[Any]) -> list[list[Any]]:
    return [*compress(given, map(isinstance, given, repeat(list)))]


def _weight(tools: Any) -> Weight | None:
    return tools.weight if type(tools) is Toolset else None


_tools_of: Final = methodcaller("get", "tools")


def _count_tools(body: JsonObject, items: list[JsonObject], most: int) -> int:
    """Those of the request, of its items, and inside namespaces."""
    lists = [*filter(None, (body.get("tools"), *map(_tools_of, items)))]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        lists.append(choice.get("tools"))
    return count_tools(lists, most)


def _count_values(body: JsonObject, limits: RequestLimits) -> int:
    """Level by level, without recursion, and within C for the sake of large requests; stops soon above the most."""
    objects: list[JsonObject] = [body]
    lists: list[list[Any]] = []
    count = 1
    for _ in range(limits.max_depth):
        below = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(lists)]
        count += len(below)
        objects, lists = objects_in(below), _lists(below)
        if count > limits.max_values or not (objects or lists):
            return count
    raise _refusal("max_depth", limits, "is nested more than {} levels deep", None)


def _refuse_above(size: int, setting: str, limits: RequestLimits, what: str, param: str | None = None) -> None:
    if size > getattr(limits, setting):
        raise _refusal(setting, limits, what, param)


def _refusal(setting: str, limits: RequestLimits, what: str, param: str | None) -> RequestRefused:
    most = getattr(limits, setting)
    subject = f"`{param}`" if param else "the request body"
    return RequestRefused(
        f"{subject} {what.format(f'{most:,}')}, the limit `limits.{setting}` of this gateway; send less, or raise it",
        code=REQUEST_TOO_LARGE,
        param=param,
        metadata={"limit": most, "setting": f"limits.{setting}"},
    )
