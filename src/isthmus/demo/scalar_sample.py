"""Strings and numbers that keep to a schema's bounds, taken from the user's words where those fit."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from isthmus.demo.pattern_sample import LONGEST, matches, sample_pattern
from isthmus.demo.supply import Supply
from isthmus.protocol.json import JsonObject

_FORMATS: Final[dict[str, tuple[str, str]]] = {
    "date": ("2026-01-31", r"\d{4}-\d\d-\d\d"),
    "date-time": ("2026-01-31T09:30:00Z", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "time": ("09:30:00Z", r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"),
    "duration": ("P1D", r"P(\d+[YMWD])+"),
    "email": ("ada@example.com", r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    "idn-email": ("ada@example.com", r"[\w.+-]+@[\w-]+(\.[\w-]+)+"),
    "uri": ("https://example.com/", r"https?://\S+"),
    "iri": ("https://example.com/", r"https?://\S+"),
    "uri-reference": ("https://example.com/", r"https?://\S+"),
    "iri-reference": ("https://example.com/", r"https?://\S+"),
    "uri-template": ("https://example.com/{id}", r"https?://\S+"),
    "hostname": ("example.com", r"[a-z0-9-]+(\.[a-z0-9-]+)+"),
    "idn-hostname": ("example.com", r"[a-z0-9-]+(\.[a-z0-9-]+)+"),
    "ipv4": ("192.0.2.1", r"\d{1,3}(\.\d{1,3}){3}"),
    "ipv6": ("2001:db8::1", r"[0-9a-f:]+::[0-9a-f:]+"),
    "uuid": ("123e4567-e89b-42d3-a456-426614174000", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    "json-pointer": ("/demo", r"(/[\w-]+)+"),
    "relative-json-pointer": ("0", r"\d"),
    "regex": (".*", r"\.\*"),
}


def sample_string(schema: JsonObject, supply: Supply | None, name: str, nth: int) -> str:
    """`nth` tells the items of a list apart."""
    least, most = min(_count(schema.get("minLength"), 0) or 0, LONGEST), _count(schema.get("maxLength"), None)
    wanted = supply.string(name) if supply else ""
    if isinstance(given := schema.get("format"), str) and given in _FORMATS:
        return _formatted(given, supply, wanted)
    if isinstance(pattern := schema.get("pattern"), str):
        if _fits(wanted, pattern, least, most):
            return wanted
        if (made := sample_pattern(pattern, least)) is not None:
            return made
    text = wanted or name or "demo"
    if nth:
        text = f"{text} {nth + 1}"
    return _sized(text, least, most, nth)


def sample_number(schema: JsonObject, supply: Supply | None, nth: int, *, whole: bool) -> int | float:
    low, high = _bounds(schema, whole)
    step = schema.get("multipleOf")
    if supply is not None:
        found = supply.number(lambda number: _allowed(number, low, high, step, whole))
        if found is not None:
            return int(found) if whole else found
    unit = Decimal(str(step)) if step else Decimal(1)
    value = _moved(_start(low, high, unit, stepped=bool(step) or whole), low, high, unit, nth)
    return int(value) if value == value.to_integral_value() else float(value)


def _formatted(given: str, supply: Supply | None, wanted: str) -> str:
    usual, shape = _FORMATS[given]
    if re.fullmatch(shape, wanted):
        return wanted
    found = re.search(rf"(?<!\S){shape}(?=[\s.,;!?]|$)", supply.words.text) if supply else None
    return found[0] if found else usual


def _fits(text: str, pattern: str, least: int, most: int | None) -> bool:
    return bool(text) and least <= len(text) <= (most or len(text)) and matches(pattern, text)


def _sized(text: str, least: int, most: int | None, nth: int) -> str:
    if most is not None and len(text) > most:
        text = text[:most] if not nth else (text[: max(most - len(str(nth)), 0)] + str(nth))[-most:] if most else ""
    while len(text) < least:
        text = (text + "." * (least - len(text)))[:least]
    return text


def _bounds(schema: JsonObject, whole: bool) -> tuple[Decimal | None, Decimal | None]:
    """The bounds as inclusive ones: an exclusive one moves by a whole, or by a hair."""
    low, high = _decimal(schema.get("minimum")), _decimal(schema.get("maximum"))
    above, below = _decimal(schema.get("exclusiveMinimum")), _decimal(schema.get("exclusiveMaximum"))
    ends = (above if above is not None else low, below if below is not None else high)
    hair = _hair(schema, *ends)
    if above is not None:
        moved = Decimal(math.floor(above)) + 1 if whole else above + hair
        low = moved if low is None else max(low, moved)
    if below is not None:
        moved = Decimal(math.ceil(below)) - 1 if whole else below - hair
        high = moved if high is None else min(high, moved)
    return low, high


def _hair(schema: JsonObject, low: Decimal | None, high: Decimal | None) -> Decimal:
    if schema.get("multipleOf"):
        return Decimal(str(schema["multipleOf"])) / 1000
    return (high - low) / 4 if low is not None and high is not None and high > low else Decimal(1)


def _start(low: Decimal | None, high: Decimal | None, unit: Decimal, *, stepped: bool) -> Decimal:
    """One, or the nearest to it that is allowed."""
    value = unit
    if low is not None and value < low:
        value = unit * math.ceil(low / unit) if stepped else low
    if high is not None and value > high:
        value = unit * math.floor(high / unit) if stepped else high
    return value


def _moved(value: Decimal, low: Decimal | None, high: Decimal | None, unit: Decimal, nth: int) -> Decimal:
    """The `nth` value from here: upwards, and downwards where the bound is near."""
    above = nth if high is None else max(int((high - value) // unit), 0)
    if nth <= above:
        return value + nth * unit
    below = nth - above if low is None else max(int((value - low) // unit), 0)
    return value - min(nth - above, below) * unit


def _allowed(number: int | float, low: Decimal | None, high: Decimal | None, step: float | None, whole: bool) -> bool:
    exact = Decimal(str(number))
    if whole and exact != exact.to_integral_value():
        return False
    if (low is not None and exact < low) or (high is not None and exact > high):
        return False
    return not step or exact % Decimal(str(step)) == 0


def _decimal(value: Any) -> Decimal | None:
    return Decimal(str(value)) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _count(value: Any, otherwise: int | None) -> int | None:
    number = _decimal(value)
    return otherwise if number is None else int(number)
