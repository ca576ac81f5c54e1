"""Durations and sizes as people write them → seconds and bytes.

In: a number or text. Out: a number, or `ValueError` with what was expected. "MB" is a million bytes, "MiB" is 2^20.
"""

from __future__ import annotations

import math
import re
from typing import Final

DURATION: Final = "duration"
SIZE: Final = "size"
"""What the `quantity` of a field's type may be; the reader then takes texts such as "30s" and "10MB"."""

_DURATIONS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZES: Final = {
    "": 1,
    "b": 1,
    "k": 10**3,
    "kb": 10**3,
    "m": 10**6,
    "mb": 10**6,
    "g": 10**9,
    "gb": 10**9,
    "t": 10**12,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)\s*", re.ASCII)
_NUMBER: Final = re.compile(r"\d[\d_]*(?:\.\d+)?", re.ASCII)
_SIZE: Final = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([a-z]*)", re.ASCII)


def parse_duration(text: str) -> float:
    """ "90", "90s", "1m30s", "250ms" → seconds."""
    folded = text.strip().lower()
    if _NUMBER.fullmatch(folded):
        return _finite(float(folded.replace("_", "")))
    total, at = 0.0, 0
    while match := _PART.match(folded, at):
        total += float(match[1]) * _DURATIONS[match[2]]
        at = match.end()
    if at == 0 or at != len(folded):
        raise ValueError('a duration, such as 30, "30s", "5m" or "1h30m"')
    return _finite(total)


def parse_size(text: str) -> int:
    """ "1048576", "10MB", "1.5 GiB" → bytes."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _SIZES:
        raise ValueError('a size, such as 1048576, "10MB" or "10MiB"')
    number = match[1].replace("_", "")
    scale = _SIZES[match[2]]
    return int(number) * scale if "." not in number else round(_finite(float(number)) * scale)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("a number that is not endless")
    return value
