"""How a client narrows a search: its `filters`, `user_location`, `search_context_size`, `external_web_access`.

In: a declaration of `web_search`, or the `settings` of Codex, which are spelled alike. Out: a query but for its words.
What is not of the right type says nothing: it was checked, or left out with a decision, where the request was planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from isthmus.ports.search import NOWHERE, Location, Query, Scope, Size

Offline = Literal["nothing", "index"]
"""What a client gets that does not want the web itself."""
MAX_DOMAINS: Final = 100
"""Domains of one filter that count."""
_SIZES: Final[Mapping[str, Size]] = {"low": "low", "medium": "medium", "high": "high"}


@dataclass(frozen=True, slots=True)
class Wishes:
    scope: Scope
    location: Location
    size: Size

    def query(self, text: str, *, recency: int | None = None, domains: tuple[str, ...] = ()) -> Query:
        """`domains`: of this question alone."""
        scope = replace(self.scope, allowed=domains) if domains else self.scope
        return Query(text, scope, recency, self.location, self.size)


def read_wishes(given: Mapping[str, Any], offline: Offline) -> Wishes:
    filters = _table(given.get("filters"))
    place = _table(given.get("user_location"))
    # OpenAI's first search, and some clients still, nest it one deeper.
    place = {**_table(place.get("approximate")), **place}
    where = {name: _word(place.get(name)) for name in ("country", "region", "city", "timezone")}
    return Wishes(
        Scope(
            read_domains(filters.get("allowed_domains")),
            read_domains(filters.get("blocked_domains")),
            read_access(given.get("external_web_access"), offline),
        ),
        Location(**{**where, "country": where["country"].upper()}) if any(where.values()) else NOWHERE,
        _SIZES.get(str(given.get("search_context_size")), "medium"),
    )


def read_access(said: Any, offline: Offline) -> Literal["live", "index", "kept"]:
    """What `external_web_access` allows: `true` all, `"indexed"` searches, `false` what the operator has decided."""
    if said == "indexed" or (said is False and offline == "index"):
        return "index"
    return "kept" if said is False else "live"


def read_domains(value: Any) -> tuple[str, ...]:
    found = [each.strip() for each in value if isinstance(each, str)] if isinstance(value, list) else []
    return tuple(dict.fromkeys(each for each in found if each))[:MAX_DOMAINS]


def _word(value: Any) -> str:
    return value.strip()[:100] if isinstance(value, str) else ""


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
