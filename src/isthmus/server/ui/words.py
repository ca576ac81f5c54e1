"""Numbers as people read them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from markupsafe import Markup, escape

_UNITS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def count(value: float | None) -> str:
    """`1,234`, from ten thousand on `12.3k`."""
    if value is None:
        return "–"
    for unit, sign in _UNITS:
        if abs(value) >= unit * (10 if sign == "k" else 1):
            return f"{value / unit:.3g}{sign}"
    return f"{value:,.0f}"


def size(value: float | None) -> str:
    if value is None:
        return "–"
    for unit, sign in _UNITS:
        if value >= unit:
            return f"{value / unit:.3g} {sign}B"
    return f"{value:.0f} B"


def seconds(value: float | None) -> str:
    """`0.4 ms`, `38 ms`, `1.24 s`, `3 min 5 s`."""
    if value is None:
        return "–"
    if value < 0.01:
        return f"{value * 1000:.1f} ms"
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 60:
        return f"{value:.2f} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def money(value: float | None) -> str:
    if value is None:
        return "–"
    if value == 0:
        return "$0"
    return f"${value:.2f}" if value >= 1 else f"${value:.3f}" if value >= 0.01 else f"${value:.2g}"


def clock(at: float | None) -> str:
    """The time of day, in UTC, with the day where that is not today's."""
    if at is None:
        return "–"
    then, today = datetime.fromtimestamp(at, UTC), datetime.now(UTC)
    return then.strftime("%H:%M:%S" if then.date() == today.date() else "%d %b %H:%M")


def moment(at: float | None) -> str:
    """The whole of it, for a machine and for a tip."""
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def ago(at: float | None) -> str:
    if at is None:
        return "never"
    past = max(time.time() - at, 0)
    for unit, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if past >= unit:
            return f"{past / unit:.0f} {word} ago"
    return "just now" if past < 5 else f"{past:.0f} s ago"


def ticks(words: str) -> Markup:
    """Words in which `names` stand in backticks, as diagnostics have them."""
    parts = words.split("`")
    if len(parts) % 2 == 0:
        return escape(words)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in enumerate(parts)
    )


def fact(value: Any) -> str:
    """A value of a provider file, on one line."""
    if value is None or value in ("", [], {}):
        return "–"
    match value:
        case bool():
            return "yes" if value else "no"
        case str():
            return value
        case list() if all(isinstance(each, str) for each in value):
            return ", ".join(value)
        case float() if value == int(value):
            return str(int(value))
    return json.dumps(value, ensure_ascii=False)


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


FILTERS: Final[dict[str, Callable[..., str]]] = {
    "count": count,
    "size": size,
    "seconds": seconds,
    "money": money,
    "clock": clock,
    "moment": moment,
    "ago": ago,
    "fact": fact,
    "pretty": pretty,
    "ticks": ticks,
}
