"""Strings and numbers that keep to a schema's bounds, taken from the user's words where those fit."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from isthmus.demo.pattern_sample import LONGEST, matches, sample_pattern
from isthmus.demo.supply import Supply
from isthmus.protocol.json import JsonObject

_CLOCK: Final = r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"
_FORMATS: Final[dict[str, tuple[str, str]]] = {
    "date": ("2026-01-31", r"\d{4}-\d\d-\d\d"),
    "date-time": ("2026-01-31T09:30:00Z", rf"\d{{4}}-\d\d-\d\dT{_CLOCK}"),
    "time": ("09:30:00Z", _CLOCK),
    "duration": ("P1D", r"P(\d+[YMWD])+"),
    "email": ("ada@example.com", r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    "uri": ("https://example.com/", r"https?://\S+"),
    "hostname": ("example.com", r"[a-z0-9-]+(\.[a-z0-9-]+)+"),
    "ipv4": ("192.0.2.1", r"\d{1,3}(\.\d{1,3}){3}"),
    "ipv6": ("2001:db8::1", r"[0-9a-f:]+::[0-9a-f:]+"),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
}
"""Those that strict schemas may name: a usual value, and how one in a text looks."""
_NEAR: Final = 20
"""Steps to either side in which numbers of one list are looked for."""


def sample_string(schema: JsonObject, supply: Supply | None, name: str, nth: int) -> str:
    """`nth` tells the items of a list apart."""
    least, most = min(int(schema.get("minLength") or 0), LONGEST), int(schema.get("maxLength", LONGEST))
    wanted = supply.string(name) if supply else ""
    if (given := schema.get("format")) in _FORMATS:
        return _formatted(given, supply, wanted)
    if isinstance(pattern := schema.get("pattern"), str):
        if wanted and least <= len(wanted) <= most and matches(pattern, wanted):
            return wanted
        if (made := sample_pattern(pattern, least)) is not None:
            return made
    number = f" {nth + 1}" if nth else ""
    text = (wanted or name or "demo")[: max(most - len(number), 0)] + number[: max(most, 0)]
    return text.ljust(least, ".")


def _formatted(given: Any, supply: Supply | None, wanted: str) -> str:
    usual, shape = _FORMATS[given]
    if re.fullmatch(shape, wanted):
        return wanted
    found = re.search(rf"(?<!\S){shape}(?=[\s.,;!?]|$)", supply.words.text) if supply else None
    return found[0] if found else usual


def sample_number(schema: JsonObject, supply: Supply | None, nth: int, *, whole: bool) -> int | float:
    """A number of the user's that fits; else one, or what is nearest to it on the grid that the bounds leave."""
    step = _decimal(schema.get("multipleOf")) or (Decimal(1) if whole else None)
    ends = {name: _decimal(schema.get(name)) for name in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")}
    low = max((end for end in list(ends.values())[:2] if end is not None), default=None)
    high = min((end for end in list(ends.values())[2:] if end is not None), default=None)

    def fits(number: int | float | Decimal) -> bool:
        exact = Decimal(str(number))
        return (
            (low is None or (exact > low if low == ends["exclusiveMinimum"] else exact >= low))
            and (high is None or (exact < high if high == ends["exclusiveMaximum"] else exact <= high))
            and (step is None or exact % step == 0)
            and (not whole or exact == exact.to_integral_value())
        )

    if supply is not None and (found := supply.number(fits)) is not None:
        return int(found) if whole else found
    unit = step or (min(Decimal(1), (high - low) / 4) if low is not None and high is not None else None) or Decimal(1)
    first = 1
    if low is not None and unit < low:
        first = math.ceil(low / unit)
    elif high is not None and unit > high:
        first = math.floor(high / unit)
    near = [*range(first, first + _NEAR), *range(first - 1, first - _NEAR, -1)]
    values = [value for value in (*(unit * times for times in near), low, high) if value is not None and fits(value)]
    value = values[nth % len(values)] if values else unit * first
    return int(value) if value == value.to_integral_value() else float(value)


def _decimal(value: Any) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None
