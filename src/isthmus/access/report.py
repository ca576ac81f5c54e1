"""What was used, as people ask for it and read it: a question in words, and its answer as rows or as CSV. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from typing import Any, Final, cast

from isthmus.errors import RequestRefused
from isthmus.ports.spending import COLUMNS, NANO, Column, Use

DEFAULT_BY: Final[tuple[Column, ...]] = ("day", "key", "provider", "model")
LONGEST: Final = 3660
"""Days that a question may be about."""
MOST_ROWS: Final = 10_000
_AGO: Final = re.compile(r"(\d{1,4})d")
_FIGURES: Final = ("requests", "input_tokens", "cached_tokens", "output_tokens")
FILTERS: Final = ("key", "team")


@dataclass(frozen=True, slots=True)
class Question:
    since: str
    until: str
    by: tuple[Column, ...] = DEFAULT_BY
    key: str | None = None
    team: str | None = None

    def asked(self) -> dict[str, Any]:
        """As the store is asked."""
        return {"since": self.since, "until": self.until, "by": self.by, "key": self.key, "team": self.team}


def read_question(asked: Mapping[str, str], now: float) -> Question:
    """`since` and `until`: days of UTC, or so many days ago (`30d`); `by`: names with commas between them."""
    today = datetime.fromtimestamp(now, UTC).date()
    until = _day(asked.get("until") or today.isoformat(), today, "until")
    since = _day(asked.get("since") or "29d", today, "since")
    if not 0 <= (until - since).days < LONGEST:
        words = f"`since` ({since}) must not be later than `until` ({until}), nor {LONGEST} days earlier"
        raise RequestRefused(words, code="invalid_value", param="since")
    given = asked.get("by")
    by = DEFAULT_BY if given is None else tuple(name.strip() for name in given.split(",") if name.strip())
    if unknown := [name for name in by if name not in COLUMNS]:
        known = ", ".join(f"`{name}`" for name in COLUMNS)
        raise RequestRefused(f"`by` has `{unknown[0]}`; it may have {known}", code="invalid_value", param="by")
    only = {name: asked[name] for name in FILTERS if asked.get(name)}
    return Question(since.isoformat(), until.isoformat(), cast(tuple[Column, ...], by), **only)


def _day(given: str, today: date, name: str) -> date:
    ago = _AGO.fullmatch(given)
    if ago is not None:
        return today - timedelta(days=int(ago[1]))
    try:
        return date.fromisoformat(given)
    except ValueError:
        words = f"`{name}` must be a day (`2026-11-17`) or so many days ago (`30d`)"
        raise RequestRefused(words, code="invalid_value", param=name) from None


def row_of(use: Use, by: Sequence[Column]) -> dict[str, Any]:
    """What it is for, and its figures; money in dollars."""
    return {
        **{name: getattr(use, name) for name in COLUMNS if name in by},
        **{name: getattr(use, name) for name in _FIGURES},
        "cost": use.nanos / NANO,
        "unpriced_requests": use.unpriced,
    }


def as_csv(uses: Sequence[Use], by: Sequence[Column]) -> str:
    """With a head; cells that a spreadsheet would take for a formula are text."""
    columns = list(row_of(Use("", "", "", "", "", ""), by))
    written = StringIO()
    writer = csv.DictWriter(written, columns, lineterminator="\r\n")
    writer.writeheader()
    for use in uses:
        row = row_of(use, by)
        writer.writerow({name: _cell(value) for name, value in row.items()} | {"cost": f"{use.nanos / NANO:.9f}"})
    return written.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value


def total_of(uses: Sequence[Use]) -> Use:
    total = Use("", "", "", "", "", "")
    for use in uses:
        total = total.plus(use)
    return total
