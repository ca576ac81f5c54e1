"""What was used and what it cost, by day: bars, a table, and the same as a file for a spreadsheet."""

from __future__ import annotations

import time
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

from isthmus.access.report import FILTERS, MOST_ROWS, Question, as_csv, read_question, total_of
from isthmus.ports.spending import COLUMNS, NANO, Use
from isthmus.server.ui.plots import Series, bars
from isthmus.server.ui.words import count, money

if TYPE_CHECKING:
    from isthmus.server.ui.pages import Look

RANGES: Final = {"7d": "6d", "30d": "29d", "90d": "89d"}
_MOST_SHOWN: Final = 500


async def usage_view(look: Look) -> dict[str, Any]:
    question, uses = await _asked(look)
    days = await _uses(look, question, by=("day",))
    asked = {name: value for name in ("since", "until", "by", *FILTERS) if (value := look.asked.get(name))}
    return {
        "question": question,
        "asked": asked,
        "ranges": RANGES,
        "columns": [name for name in COLUMNS if name in question.by],
        "all_columns": COLUMNS,
        "uses": uses[:_MOST_SHOWN],
        "more": max(0, len(uses) - _MOST_SHOWN),
        "total": total_of(days),
        "nano": NANO,
        "plots_shown": draw(days, question) if days else (),
    }


async def usage_csv(look: Look) -> str:
    question, uses = await _asked(look)
    return as_csv(uses, question.by)


async def _asked(look: Look) -> tuple[Question, list[Use]]:
    question = read_question(look.asked, time.time())
    await look.gateway.gates.written()
    return question, await _uses(look, question)


async def _uses(look: Look, question: Question, **other: Any) -> list[Use]:
    asked = {**question.asked(), **other, "owner": look.visitor.owner, "most": MOST_ROWS}
    return await look.gateway.store.uses(**asked)


def draw(days: list[Use], question: Question) -> list[tuple[str, Any, list[Series]]]:
    """Name, picture and legend of each: a bar for each day, those without anything included."""
    known = {use.day: use for use in days}
    since, until = date.fromisoformat(question.since), date.fromisoformat(question.until)
    all_days = [(since + timedelta(days=number)).isoformat() for number in range((until - since).days + 1)]
    rows = [known.get(day) or Use(day, "", "", "", "", "") for day in all_days]
    labels = [day[5:] for day in all_days]
    tokens = [
        Series("input", "in", [row.input_tokens - row.cached_tokens for row in rows]),
        Series("cached", "cached", [row.cached_tokens for row in rows]),
        Series("output", "out", [row.output_tokens for row in rows]),
    ]
    spent = [Series("spent", "money", [row.nanos / NANO for row in rows])]
    asked = [Series("requests", "ok", [row.requests for row in rows])]
    return [
        ("Cost", bars(labels, spent, money, "Cost by day"), spent),
        ("Tokens", bars(labels, tokens, count, "Tokens by day"), tokens),
        ("Requests", bars(labels, asked, count, "Requests by day"), asked),
    ]
