"""Find the JSON that a model wrapped in other text: the whole answer, a code fence, or a value amid prose.

In: an answer. Out: groups of candidates, the most likely group first, each with its exact text (numbers and spacing
as the model wrote them) and its value. The work is bounded by the length of the text, whatever the text is: failed
attempts are paid for out of a budget.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, Final, NoReturn

_SPACE: Final = " \t\r\n"
_START: Final = re.compile(r'\{[ \t\r\n]*["}]|\[[ \t\r\n]*[\[\]{"\-0-9tfn]')
_FENCE: Final = re.compile(r"^[ \t]*```[^\n`]*$", re.MULTILINE)
_MOST_CANDIDATES: Final = 64
_MOST_FENCES: Final = 2 * _MOST_CANDIDATES
_LEAST_COST: Final = 64
"""What an attempt costs at least, in characters: an exception is dearer than reading a few of them."""
_LONGEST_INT: Final = 4000
"""Python refuses to read longer digit strings as `int`."""


@dataclass(frozen=True, slots=True)
class Candidate:
    text: str
    value: Any


def find_json(text: str) -> Iterator[list[Candidate]]:
    """Candidates in groups: the whole text; what stands in fences; what stands in prose. Empty groups are left out."""
    whole = parse_json(text)
    if whole is not None:
        yield [whole]
        inner = parse_json(whole.value) if isinstance(whole.value, str) else None
        if inner is not None:  # JSON that was encoded twice
            yield [inner]
        return
    fenced = _in_fences(text)
    if fenced:
        yield fenced
    scattered = _in_prose(text)
    if scattered:
        yield scattered


def parse_json(text: str) -> Candidate | None:
    """The text as one JSON value, if it is one (and nothing else)."""
    inner = text.strip(_SPACE)
    try:
        value, end = _DECODER.raw_decode(inner)
    except (ValueError, RecursionError):
        return None
    return Candidate(inner, value) if end == len(inner) else None


def _in_fences(text: str) -> list[Candidate]:
    marks = list(islice(_FENCE.finditer(text), _MOST_FENCES))
    found: list[Candidate] = []
    for opened, closed in zip(marks[::2], [*marks[1::2], None], strict=False):
        candidate = parse_json(text[opened.end() : closed.start() if closed else len(text)])
        if candidate is not None:
            found.append(candidate)
    return found


def _in_prose(text: str) -> list[Candidate]:
    """Outermost objects and arrays, from left to right."""
    found: list[Candidate] = []
    budget = 4 * len(text) + 64 * 1024
    start = _START.search(text)
    while start is not None and budget > 0 and len(found) < _MOST_CANDIDATES:
        at = start.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # The exception counts the lines up to its place: cheap per character, but from the very beginning.
            budget -= max(error.pos - at, _LEAST_COST) + error.pos // 32
            end = at + 1
        except (ValueError, RecursionError):
            budget -= max(len(text) - at, _LEAST_COST)
            end = at + 1
        else:
            found.append(Candidate(text[at:end], value))
        start = _START.search(text, end)
    return found


def _read_int(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= _LONGEST_INT else Decimal(digits)


def _read_float(digits: str) -> float | Decimal:
    value = float(digits)
    return value if math.isfinite(value) else Decimal(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_read_int, parse_float=_read_float, parse_constant=_refuse_constant)
