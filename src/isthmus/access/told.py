"""Keys and deeds as they are told, by the API and by `--json` alike. Nothing that opens anything is among it."""

from __future__ import annotations

from typing import Any, Literal

from isthmus.access.wishes import RATES
from isthmus.ports.keys import Deed, StoredKey

Status = Literal["active", "expired", "revoked"]


def status_of(key: StoredKey, now: float) -> Status:
    return "revoked" if key.revoked_at else "active" if key.in_force(now) else "expired"


def tell_key(key: StoredKey, now: float) -> dict[str, Any]:
    grant = key.grant
    return {
        "id": key.id,
        "object": "isthmus.key",
        "name": key.name,
        "prefix": key.prefix,
        "status": status_of(key, now),
        "owner": key.owner,
        "team": key.team or None,
        "admin": grant.admin,
        "models": list(grant.models),
        "endpoints": sorted(grant.endpoints),
        "tools": None if grant.tools is None else list(grant.tools),
        **{name: getattr(grant.rates, name) or None for name in RATES},
        "daily_budget": grant.budget.day or None,
        "monthly_budget": grant.budget.month or None,
        "metadata": dict(key.metadata),
        "created_at": key.created_at,
        "expires_at": key.expires_at or None,
        "revoked_at": key.revoked_at or None,
        "previous_until": key.previous_until if key.previous and key.previous_until > now else None,
    }


def tell_deed(deed: Deed) -> dict[str, Any]:
    return {
        "id": deed.number,
        "object": "isthmus.deed",
        "at": deed.at,
        "actor": deed.actor,
        "action": deed.action,
        "target": deed.target,
        "details": dict(deed.details),
    }
