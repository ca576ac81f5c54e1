"""Keys on a terminal. 80 columns hold which, whose and until when; wider ones also what it opens and how much."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console
from rich.text import Text

from isthmus.access.told import status_of
from isthmus.access.wishes import RATES
from isthmus.cli.layout import show_table
from isthmus.cli.terminal import FATES, WIDE, clean, facts_table, lined_table, number, shorten
from isthmus.ports.keys import StoredKey

_STATES: Final = {"active": FATES["supported"], "expired": FATES["ignored"], "revoked": FATES["rejected"]}
_RATE_WORDS: Final = dict(zip(RATES, ("requests/min", "tokens/min", "at once", "streams"), strict=True))


def show_keys(console: Console, keys: Sequence[StoredKey], now: float) -> None:
    wide = console.width >= WIDE
    table = lined_table(
        "name", "key", *(("id",) if wide else ()), "team", "state", "ends", *(("opens",) if wide else ())
    )
    for key in keys:
        sign, style = _STATES[status := status_of(key, now)]
        row = [
            Text(shorten(key.name, 40 if wide else 22)),
            Text(f"{key.prefix}…", no_wrap=True),
            *((Text(key.id, style="dim", no_wrap=True),) if wide else ()),
            Text(shorten(key.team, 20) or "-"),
            Text(f"{sign} {status}", style=style, no_wrap=True),
            Text(_when(key.expires_at, "%Y-%m-%d"), no_wrap=True),
            *((Text(shorten(_opens(key), 60)),) if wide else ()),
        ]
        table.add_row(*row)
    show_table(console, table, indent=0)


def show_key(console: Console, key: StoredKey, now: float) -> None:
    sign, style = _STATES[status := status_of(key, now)]
    grant = key.grant
    facts = {
        "name": key.name,
        "id": key.id,
        "key": f"{key.prefix}…",
        "owner": key.owner,
        "models": ", ".join(grant.models) or "all",
        "endpoints": "all, and what operators do" if grant.admin else ", ".join(sorted(grant.endpoints)) or "all",
        "tools": "all" if grant.tools is None else ", ".join(grant.tools) or "none",
        "limits": _limits(key) or "none of its own",
        "budget": _budget(key) or "none of its own",
        "metadata": ", ".join(f"{name}={value}" for name, value in key.metadata.items()) or "-",
        "created": _when(key.created_at),
        "ends": _when(key.expires_at),
        "revoked": _when(key.revoked_at),
        "key before": f"opens until {_when(key.previous_until)}" if key.previous and key.previous_until > now else "",
    }
    table = facts_table()
    table.add_row("state", Text(f"{sign} {status}", style=style))
    for name, fact in facts.items():
        if fact and not (name == "revoked" and not key.revoked_at):
            table.add_row(name, Text(clean(fact)))
    show_table(console, table, indent=0)


def _opens(key: StoredKey) -> str:
    grant = key.grant
    parts = [
        "operator" if grant.admin else "",
        ", ".join(grant.models),
        ", ".join(sorted(grant.endpoints)),
        "" if grant.tools is None else f"tools: {', '.join(grant.tools) or 'none'}",
        _limits(key),
        _budget(key),
    ]
    return "; ".join(part for part in parts if part) or "all"


def _limits(key: StoredKey) -> str:
    rates = {word: getattr(key.grant.rates, name) for name, word in _RATE_WORDS.items()}
    return ", ".join(f"{number(count)} {word}" for word, count in rates.items() if count)


def _budget(key: StoredKey) -> str:
    budget = key.grant.budget
    told = (("a day", budget.day), ("a month", budget.month))
    return ", ".join(f"${amount:,.2f} {word}" for word, amount in told if amount)


def _when(moment: float, spelled: str = "%Y-%m-%d %H:%M:%S UTC") -> str:
    return datetime.fromtimestamp(moment, UTC).strftime(spelled) if moment else "never"
