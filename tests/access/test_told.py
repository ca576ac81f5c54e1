"""Keys as they are told: all about them, and nothing that opens anything."""

from __future__ import annotations

import json

from isthmus.access.secret import digest_of
from isthmus.access.told import status_of, tell_deed, tell_key
from isthmus.access.wishes import FIELDS
from isthmus.ports.keys import Budget, Grant, Rates
from keyed import NOW, deed, secret_of, stored_key

WHOLE = stored_key(
    "ann",
    id="key_1",
    team="search",
    grant=Grant(("fast",), frozenset({"chat"}), (), True, Rates(1, 2, 3, 4), Budget(5.0, 6.0)),
    metadata={"a": "b"},
    expires_at=NOW + 1,
    previous=digest_of("before"),
    previous_until=NOW + 1,
)


def test_everything_that_can_be_wished_is_told() -> None:
    told = tell_key(WHOLE, NOW)
    assert set(FIELDS) - {"expires_in"} <= set(told)
    assert told == {
        "id": "key_1",
        "object": "isthmus.key",
        "name": "ann",
        "prefix": secret_of("ann")[:10],
        "status": "active",
        "owner": "team:search",
        "team": "search",
        "admin": True,
        "models": ["fast"],
        "endpoints": ["chat"],
        "tools": [],
        "requests_per_minute": 1,
        "tokens_per_minute": 2,
        "concurrent_requests": 3,
        "concurrent_streams": 4,
        "daily_budget": 5.0,
        "monthly_budget": 6.0,
        "metadata": {"a": "b"},
        "created_at": NOW,
        "expires_at": NOW + 1,
        "revoked_at": None,
        "previous_until": NOW + 1,
    }


def test_no_digest_and_no_key_is_told() -> None:
    told = json.dumps(tell_key(WHOLE, NOW))
    for secret in (secret_of("ann"), "before"):
        assert secret not in told
        assert digest_of(secret).hex() not in told


def test_what_is_not_limited_is_null() -> None:
    told = tell_key(stored_key(), NOW)
    assert [told[name] for name in ("team", "tools", "tokens_per_minute", "daily_budget", "expires_at")] == [None] * 5
    assert (told["models"], told["endpoints"], told["previous_until"]) == ([], [], None)


def test_how_a_key_stands() -> None:
    assert status_of(WHOLE, NOW) == "active"
    assert status_of(WHOLE, NOW + 1) == "expired"
    assert status_of(stored_key(revoked_at=1.0), NOW) == "revoked"
    assert tell_key(WHOLE, NOW + 2)["previous_until"] is None


def test_a_deed_is_told_whole() -> None:
    told = {"object": "isthmus.deed", "at": NOW, "actor": "cli", "action": "key.create", "target": "key_1"}
    assert tell_deed(deed(target="key_1", name="ann")) == {"id": 0, **told, "details": {"name": "ann"}}
