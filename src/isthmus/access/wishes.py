"""What somebody wants a key to be: read once, for the command, the API and the page alike.

In: fields as they travel (`name`, `team`, `models` …). Out: the key as it will be; or a refusal that names the field.
What is not mentioned stays as it is; `null` takes a limit away.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from isthmus.bridge.metadata import check_metadata
from isthmus.errors import RequestRefused
from isthmus.ports.keys import ENDPOINTS, Budget, Grant, Rates, StoredKey

RATES: Final = ("requests_per_minute", "tokens_per_minute", "concurrent_requests", "concurrent_streams")
MAX_NAME: Final = 100
MAX_LISTED: Final = 200
"""Models, or tools, that a key may be narrowed to."""
_LONGEST_LISTED: Final = 200
_LARGEST: Final = 10**12
_TEAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOOL: Final = re.compile(r"[a-z][a-z0-9_]*|mcp:[^\s:]{1,100}")
_LAST_DAY: Final = 253_402_300_799
"""The end of the year 9999."""


class Wishes(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    name: str | UnsetType = UNSET
    team: str | UnsetType | None = UNSET
    models: list[str] | UnsetType | None = UNSET
    endpoints: list[str] | UnsetType | None = UNSET
    tools: list[str] | UnsetType | None = UNSET
    admin: bool | UnsetType = UNSET
    expires_at: float | UnsetType | None = UNSET
    expires_in: float | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    requests_per_minute: int | UnsetType | None = UNSET
    tokens_per_minute: int | UnsetType | None = UNSET
    concurrent_requests: int | UnsetType | None = UNSET
    concurrent_streams: int | UnsetType | None = UNSET
    daily_budget: float | UnsetType | None = UNSET
    monthly_budget: float | UnsetType | None = UNSET


FIELDS: Final = Wishes.__struct_fields__


def read_wishes(given: Any) -> Wishes:
    if not isinstance(given, dict):
        raise RequestRefused('send an object, such as `{"name": "ann", "team": "search"}`', code="invalid_type")
    for name in given:
        if name not in FIELDS:
            words = f"a key has no `{name}`; it has {', '.join(f'`{each}`' for each in FIELDS)}"
            raise RequestRefused(words, code="unknown_parameter", param=str(name))
    try:
        return msgspec.convert(given, Wishes)
    except msgspec.ValidationError as error:
        found = re.search(r"`\$\.(\w+)", str(error))
        param = found[1] if found else None
        raise RequestRefused(str(error).replace("`$.", "`"), code="invalid_type", param=param) from error


def wished(key: StoredKey, wishes: Wishes, now: float) -> StoredKey:
    """The key as it is wished to be."""
    name = key.name if wishes.name is UNSET else wishes.name.strip()
    _check_name(name)
    team = key.team if wishes.team is UNSET else wishes.team or ""
    if team and not _TEAM.fullmatch(team):
        raise _refused("team", f"is `{team}`: use up to 64 letters, digits, `.`, `_` and `-`")
    metadata = key.metadata if wishes.metadata is UNSET else check_metadata(wishes.metadata)
    grant, expires_at = _grant(key.grant, wishes), _expiry(key, wishes, now)
    return replace(key, name=name, team=team, grant=grant, metadata=metadata, expires_at=expires_at)


def changes(before: StoredKey, after: StoredKey) -> dict[str, str]:
    """What is different, in words for the audit log."""
    old, new = (_plain(each) for each in (before, after))
    return {name: value for name, value in new.items() if old[name] != value}


def _plain(key: StoredKey) -> dict[str, str]:
    grant = key.grant
    return {
        "name": key.name,
        "team": key.team,
        "models": ", ".join(grant.models) or "all",
        "endpoints": ", ".join(sorted(grant.endpoints)) or "all",
        "tools": "all" if grant.tools is None else ", ".join(grant.tools) or "none",
        **{name: str(getattr(grant.rates, name)) for name in RATES},
        "admin": str(grant.admin).lower(),
        "daily_budget": f"{grant.budget.day:g}",
        "monthly_budget": f"{grant.budget.month:g}",
        "expires_at": f"{key.expires_at:.0f}",
        "metadata": msgspec.json.encode(dict(key.metadata)).decode(),
    }


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise _refused("name", f"must have 1 to {MAX_NAME} characters that can be printed")
    if name.startswith(("key_", "ik_")):
        raise _refused("name", "must not begin as ids (`key_`) and keys (`ik_`) do")


def _grant(grant: Grant, wishes: Wishes) -> Grant:
    models, endpoints, tools = grant.models, grant.endpoints, grant.tools
    if wishes.models is not UNSET:
        models = _listed("models", wishes.models or ())
    if wishes.endpoints is not UNSET:
        endpoints = frozenset(_listed("endpoints", wishes.endpoints or ()))
        if unknown := sorted(endpoints - set(ENDPOINTS)):
            words = f"has `{unknown[0]}`, which is none; there are {', '.join(f'`{each}`' for each in ENDPOINTS)}"
            raise _refused("endpoints", words)
    if wishes.tools is not UNSET:
        tools = None if wishes.tools is None else _listed("tools", wishes.tools)
        if unfit := next((each for each in tools or () if not _TOOL.fullmatch(each)), None):
            raise _refused("tools", f"has `{unfit}`: name types such as `web_search`, `image_generation` or `mcp:NAME`")
    return Grant(
        models=models,
        endpoints=endpoints,
        tools=tools,
        admin=grant.admin if wishes.admin is UNSET else wishes.admin,
        rates=_rates(grant.rates, wishes),
        budget=_budget(grant.budget, wishes),
    )


def _listed(name: str, values: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(value.strip() for value in values))
    if len(found) > MAX_LISTED:
        raise _refused(name, f"has {len(found)} entries; {MAX_LISTED} at most")
    for value in found:
        if not value or len(value) > _LONGEST_LISTED or not value.isprintable():
            raise _refused(name, f"has an entry that is empty, or longer than {_LONGEST_LISTED} characters")
    return found


def _rates(rates: Rates, wishes: Wishes) -> Rates:
    wanted: dict[str, int] = {}
    for name in RATES:
        given = getattr(wishes, name)
        if given is not UNSET:
            wanted[name] = given or 0
            if not 0 <= wanted[name] <= _LARGEST:
                raise _refused(name, "must be a whole number that is not negative; 0: no limit")
    return replace(rates, **wanted)


def _budget(budget: Budget, wishes: Wishes) -> Budget:
    wanted: dict[str, float] = {}
    for name, field in (("daily_budget", "day"), ("monthly_budget", "month")):
        given = getattr(wishes, name)
        if given is not UNSET:
            wanted[field] = given or 0.0
            if not (math.isfinite(wanted[field]) and 0 <= wanted[field] <= _LARGEST):
                raise _refused(name, "must be an amount of US dollars that is not negative; 0: no limit")
    return replace(budget, **wanted)


def _expiry(key: StoredKey, wishes: Wishes, now: float) -> float:
    if wishes.expires_in is not UNSET and wishes.expires_at is not UNSET:
        raise _refused("expires_in", "and `expires_at` exclude each other; send one of them")
    if wishes.expires_in is not UNSET:
        if not (math.isfinite(wishes.expires_in) and 0 < wishes.expires_in <= _LAST_DAY - now):
            raise _refused("expires_in", "must be a number of seconds above 0")
        return now + wishes.expires_in
    if wishes.expires_at is UNSET:
        return key.expires_at
    at = wishes.expires_at or 0.0
    if at and not (math.isfinite(at) and now < at <= _LAST_DAY):
        raise _refused("expires_at", "must be a time that is still to come, in seconds since 1970; null: never")
    return at


def _refused(param: str, what: str) -> RequestRefused:
    return RequestRefused(f"`{param}` {what}", code="invalid_value", param=param)
