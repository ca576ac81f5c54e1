"""Rate limits as Anthropic's clients read them, from those that OpenAI's read. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

_OURS: Final = re.compile(rb"x-ratelimit-(limit|remaining|reset)-(requests|tokens)")
_PIECE: Final = re.compile(rb"(\d{1,9}(?:\.\d{1,9})?)(ms|h|m|s)")
_SECONDS: Final = {b"ms": 0.001, b"s": 1.0, b"m": 60.0, b"h": 3600.0}
PREFIX: Final = b"x-ratelimit-"


def as_anthropic(headers: list[tuple[bytes, bytes]], now: float) -> list[tuple[bytes, bytes]]:
    """`x-ratelimit-remaining-tokens` → `anthropic-ratelimit-tokens-remaining`; of a time that is left, its end."""
    told = []
    for name, value in headers:
        found = _OURS.fullmatch(name)
        if found is None:
            continue
        what = found[1]
        if what == b"reset":
            seconds = read_duration(value)
            if seconds is None:
                continue
            at = datetime.fromtimestamp(now, UTC) + timedelta(seconds=seconds)
            value = at.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        told.append((b"anthropic-ratelimit-%b-%b" % (found[2], what), value))
    return told


def read_duration(text: bytes) -> float | None:
    """`6m0s`, `12.5s`, `20ms`; `None`: that is none."""
    pieces = _PIECE.findall(text)
    if not pieces or b"".join(number + unit for number, unit in pieces) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in pieces)
