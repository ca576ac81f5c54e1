"""What a key may be wished to be, and which field is wrong where it may not."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.access.wishes import FIELDS, changes, read_wishes, wished
from isthmus.errors import RequestRefused
from isthmus.ports.keys import Budget, Grant, Rates, StoredKey
from keyed import NOW, stored_key

WHOLE: dict[str, Any] = {
    "name": " ann ",
    "team": "search",
    "models": ["deepseek/*", "fast", "fast"],
    "endpoints": ["chat", "responses"],
    "tools": ["web_search", "mcp:docs"],
    "admin": True,
    "expires_in": 60,
    "metadata": {"a": "b"},
    "requests_per_minute": 1,
    "tokens_per_minute": 2,
    "concurrent_requests": 3,
    "concurrent_streams": 4,
    "daily_budget": 0.5,
    "monthly_budget": 10,
}


def wish(key: StoredKey | None = None, **fields: Any) -> StoredKey:
    return wished(key or stored_key("old"), read_wishes(fields), NOW)


def test_everything_that_is_wished_is_so() -> None:
    key = wish(**WHOLE)
    assert (key.name, key.team, key.expires_at, key.metadata) == ("ann", "search", NOW + 60, {"a": "b"})
    assert key.grant == Grant(
        models=("deepseek/*", "fast"),
        endpoints=frozenset({"chat", "responses"}),
        tools=("web_search", "mcp:docs"),
        admin=True,
        rates=Rates(1, 2, 3, 4),
        budget=Budget(0.5, 10.0),
    )
    assert set(WHOLE) | {"expires_at"} == set(FIELDS)


def test_what_is_not_mentioned_stays() -> None:
    key = wish(**WHOLE)
    assert wish(key) == key
    assert wish(key, team="other").grant == key.grant
    assert wish(key, requests_per_minute=9).grant.rates == Rates(9, 2, 3, 4)


def test_null_takes_a_limit_away() -> None:
    key = wish(**WHOLE)
    bare = wish(key, **{name: None for name in FIELDS if name not in ("name", "admin", "expires_in")}, admin=False)
    assert bare == StoredKey(key.id, "ann", key.digest, key.prefix, key.created_at)


def test_no_tools_are_not_all_tools() -> None:
    assert wish(tools=[]).grant.tools == ()
    assert wish(tools=None).grant.tools is None


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"name": ""}, "name", "1 to 100 characters"),
        ({"name": "x" * 101}, "name", "1 to 100 characters"),
        ({"name": "a\nb"}, "name", "can be printed"),
        ({"name": "key_1"}, "name", "must not begin"),
        ({"name": "ik_1"}, "name", "must not begin"),
        ({"name": 3}, "name", "Expected `str"),
        ({"team": "a b"}, "team", "letters, digits"),
        ({"team": "-x"}, "team", "letters, digits"),
        ({"models": "fast"}, "models", "Expected `array"),
        ({"models": [""]}, "models", "empty"),
        ({"models": ["x" * 201]}, "models", "longer than 200"),
        ({"models": [str(n) for n in range(201)]}, "models", "200 at most"),
        ({"endpoints": ["chats"]}, "endpoints", "`chats`, which is none; there are `responses`"),
        ({"tools": ["Web Search"]}, "tools", "name types such as `web_search`"),
        ({"tools": ["mcp:"]}, "tools", "name types"),
        ({"admin": "yes"}, "admin", "Expected `bool"),
        ({"expires_in": 0}, "expires_in", "above 0"),
        ({"expires_in": 1e300}, "expires_in", "above 0"),
        ({"expires_at": NOW}, "expires_at", "still to come"),
        ({"expires_at": 1e20}, "expires_at", "still to come"),
        ({"expires_at": NOW + 1, "expires_in": 1}, "expires_in", "exclude each other"),
        ({"metadata": {"a": 1}}, "metadata.a", "must be a text"),
        ({"metadata": {str(n): "" for n in range(17)}}, "metadata", "16 at most"),
        ({"requests_per_minute": -1}, "requests_per_minute", "not negative"),
        ({"tokens_per_minute": 1.5}, "tokens_per_minute", "Expected `int"),
        ({"concurrent_streams": 10**13}, "concurrent_streams", "whole number"),
        ({"daily_budget": -0.01}, "daily_budget", "US dollars"),
        ({"monthly_budget": float("nan")}, "monthly_budget", "US dollars"),
        ({"modles": []}, "modles", "a key has no `modles`; it has `name`"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(RequestRefused) as caught:
        wish(**fields)
    assert caught.value.param == param
    assert words in caught.value.message
    assert caught.value.meaning.status == 400


@pytest.mark.parametrize("given", [None, [], "x", 3])
def test_anything_but_an_object_is_refused(given: Any) -> None:
    with pytest.raises(RequestRefused, match="send an object"):
        read_wishes(given)


def test_what_has_changed_is_told_and_nothing_else() -> None:
    before = stored_key("ann")
    after = wish(before, team="search", models=["fast"], tools=[], requests_per_minute=5, name="bob")
    assert changes(before, after) == {
        "name": "bob",
        "team": "search",
        "models": "fast",
        "tools": "none",
        "requests_per_minute": "5",
    }
    assert changes(after, before)["models"] == changes(after, before)["tools"] == "all"
    assert changes(before, before) == {}
