"""Who may call, and as whom."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isthmus.access.book import Book
from isthmus.bridge.types.clients import CODEX
from isthmus.errors import RequestRefused, StoreUnavailable
from isthmus.gateway.caller import Caller
from isthmus.ports.keys import EVERYTHING, Grant, StoredKey
from isthmus.server.callers import ADMIN, Keys, caller_with
from isthmus.store.memory import MemoryStore
from keyed import deed, secret_of, stored_key

KEYS = Keys(["first", "second"], "chief")


def asking(path: str = "/v1/models", **headers: str) -> Any:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "path": path, "headers": named}


def test_without_keys_everybody_is_local() -> None:
    caller = Keys().identify(asking(authorization="Bearer whatever"))
    assert (caller.owner, caller.key, caller.scopes) == ("local", "", frozenset())


@pytest.mark.parametrize(
    "headers", [{"authorization": "Bearer second"}, {"authorization": "bearer  second "}, {"x_api_key": "second"}]
)
def test_a_known_key_is_local_too_and_has_a_name(headers: dict[str, str]) -> None:
    caller = KEYS.identify(asking(**headers))
    assert caller.owner == "local"
    assert len(caller.key) == 8
    assert "second" not in repr(caller)
    assert caller.key != KEYS.identify(asking(authorization="Bearer first")).key


def test_the_admin_key_opens_everything() -> None:
    assert KEYS.identify(asking(x_api_key="chief")).scopes == ADMIN


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_api_key"),
        ({"authorization": "Basic Zmlyc3Q6"}, "missing_api_key"),
        ({"authorization": "Bearer "}, "missing_api_key"),
        ({"authorization": "Bearer third"}, "invalid_api_key"),
        ({"x_api_key": "firs"}, "invalid_api_key"),
    ],
)
def test_anybody_else_is_refused(headers: dict[str, str], code: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        KEYS.identify(asking(**headers))
    assert (refused.value.code, refused.value.meaning.status) == (code, 401)


def test_the_keys_are_not_kept() -> None:
    assert "second" not in str(vars(KEYS))


def test_health_needs_no_key() -> None:
    assert KEYS.identify(asking("/health")).owner == "local"


def test_the_client_is_recognised_on_the_way() -> None:
    assert KEYS.identify(asking(x_api_key="first", originator="codex_cli_rs")).client is CODEX


def test_a_key_for_metrics_opens_these_and_nothing_else() -> None:
    keys = Keys(["first"], "chief", "watch")
    assert keys.identify(asking("/metrics", x_api_key="watch")).scopes == frozenset()
    assert keys.identify(asking("/metrics", x_api_key="chief")).scopes == ADMIN
    for path, key in (("/v1/models", "watch"), ("/metrics", "first")):
        with pytest.raises(RequestRefused) as refused:
            keys.identify(asking(path, x_api_key=key))
        assert refused.value.code == "invalid_api_key"
    assert "`metrics.key`" in refused.value.message


def test_without_such_a_key_the_operators_opens_metrics_and_else_any() -> None:
    assert Keys(["first"]).identify(asking("/metrics", x_api_key="first")).owner == "local"
    assert Keys().identify(asking("/metrics")).owner == "local"
    with pytest.raises(RequestRefused, match="no API key"):
        Keys(["first"]).identify(asking("/metrics"))
    with pytest.raises(RequestRefused, match="does not open `/metrics`"):
        Keys(["first"], "chief").identify(asking("/metrics", x_api_key="first"))


def test_metrics_may_have_a_key_where_nothing_else_has() -> None:
    keys = Keys(metrics="watch")
    assert keys.identify(asking("/v1/models")).owner == "local"
    with pytest.raises(RequestRefused, match="no API key"):
        keys.identify(asking("/metrics"))


# ── keys of the store ──────────────────────────────────────────────────────────────────────────────


async def stored(*kept: StoredKey, config: Keys | None = None, **options: Any) -> Keys:
    store = MemoryStore()
    for each in kept:
        await store.add_key(each, deed())
    book: Book[Caller] = Book(store, caller_with, **options)
    await book.look()
    keys = config or Keys()
    keys.book = book
    return keys


@pytest.mark.parametrize("shown", ["authorization", "x_api_key"])
async def test_a_key_of_the_store_has_its_own_owner_team_and_grant(shown: str) -> None:
    grant = Grant(models=("fast",), endpoints=frozenset({"responses"}))
    keys = await stored(stored_key("ann", id="key_1", grant=grant), stored_key("bob", id="key_2", team="search"))

    def ask(name: str) -> Caller:
        word = f"Bearer {secret_of(name)}" if shown == "authorization" else secret_of(name)
        return keys.identify(asking(**{shown: word}))

    ann, bob = ask("ann"), ask("bob")
    assert (ann.owner, ann.key, ann.team, ann.grant, ann.scopes) == ("key_1", "key_1", "", grant, frozenset())
    assert (bob.owner, bob.key, bob.team, bob.grant) == ("team:search", "key_2", "search", EVERYTHING)
    assert keys.named("key_1") == ann
    assert keys.find(secret_of("bob")) == bob
    with pytest.raises(RequestRefused, match="no API key"):
        keys.identify(asking())
    with pytest.raises(RequestRefused, match="not known here"):
        keys.identify(asking(x_api_key=secret_of("eve")))


async def test_keys_of_the_configuration_stay_what_they_were_beside_those_of_the_store() -> None:
    keys = await stored(stored_key("ann"), config=Keys(["first"], "chief"))
    assert keys.identify(asking(x_api_key="first")).owner == "local"
    assert keys.identify(asking(x_api_key="chief")).scopes == ADMIN
    assert keys.identify(asking(x_api_key=secret_of("ann"))).owner == stored_key("ann").id


async def test_an_empty_store_asks_nobody_and_one_with_a_revoked_key_everybody() -> None:
    keys = await stored()
    assert (keys.needed, keys.identify(asking()).owner) == (False, "local")
    keys = await stored(stored_key("ann", revoked_at=1.0))
    assert keys.needed
    with pytest.raises(RequestRefused, match="no API key"):
        keys.identify(asking())
    with pytest.raises(RequestRefused, match="was revoked, or its time is over") as caught:
        keys.identify(asking(x_api_key=secret_of("ann")))
    assert caught.value.code == "invalid_api_key"
    assert keys.find(secret_of("ann")) is None


async def test_a_key_of_the_store_may_be_an_operators() -> None:
    keys = await stored(stored_key("ops", grant=Grant(admin=True)))
    assert keys.identify(asking(x_api_key=secret_of("ops"))).scopes == ADMIN
    assert keys.identify(asking("/metrics", x_api_key=secret_of("ops"))).scopes == ADMIN


@pytest.mark.parametrize("config", [Keys(), Keys(["first"]), Keys(metrics="watch"), Keys(["first"], "chief")])
async def test_metrics_tell_of_everybody_so_that_a_key_of_the_store_must_be_meant_for_them(config: Keys) -> None:
    meant = Grant(endpoints=frozenset({"metrics"}))
    keys = await stored(stored_key("ann"), stored_key("prometheus", grant=meant), config=config)
    assert keys.identify(asking("/metrics", x_api_key=secret_of("prometheus"))).key
    with pytest.raises(RequestRefused, match="does not open `/metrics`"):
        keys.identify(asking("/metrics", x_api_key=secret_of("ann")))
    with pytest.raises(RequestRefused, match="no API key"):
        keys.identify(asking("/metrics"))


async def test_what_stays_open_is_asked_again_whether_it_may() -> None:
    keys = await stored(stored_key("ann", id="key_1"))
    ann = keys.identify(asking(x_api_key=secret_of("ann"), originator="codex_cli_rs"))
    assert keys.still(ann) == ann
    assert keys.book is not None
    store: MemoryStore = keys.book._store  # type: ignore[assignment]
    (key,) = await store.keys()
    changed = replace(key, grant=Grant(models=("fast",)))
    assert await store.change_key(changed, deed(), was=key)
    await keys.book.look()
    now = keys.still(ann)
    assert (now.grant.models, now.client) == (("fast",), CODEX)
    assert await store.change_key(replace(changed, revoked_at=1.0), deed(), was=changed)
    await keys.book.look()
    with pytest.raises(RequestRefused, match="opens nothing any more") as caught:
        keys.still(ann)
    assert caught.value.code == "invalid_api_key"


async def test_who_came_without_a_key_needs_one_when_there_is_one() -> None:
    keys = await stored()
    nobody = keys.identify(asking())
    assert keys.still(nobody) == nobody
    keys = await stored(stored_key())
    with pytest.raises(RequestRefused, match="opens nothing any more"):
        keys.still(nobody)


async def test_where_the_store_says_nothing_nobody_is_let_in_but_by_the_configuration() -> None:
    silent: Book[Caller] = Book(MemoryStore(), caller_with)
    keys, without = Keys(["first"], book=silent), Keys(book=silent)
    for ask in (
        lambda: keys.identify(asking(x_api_key=secret_of("ann"))),
        lambda: keys.find(secret_of("ann")),
        lambda: keys.named("key_1"),
        lambda: without.identify(asking()),
        lambda: without.identify(asking("/metrics")),
    ):
        with pytest.raises(StoreUnavailable) as caught:
            ask()
        assert caught.value.meaning.status == 503
    assert keys.identify(asking(x_api_key="first")).owner == "local"
    assert without.identify(asking("/health")).owner == "local"


async def test_the_models_of_a_team_go_with_its_keys_however_they_are_found() -> None:
    ann, bob = stored_key("ann", team="search"), stored_key("bob")
    keys = await stored(ann, bob, config=Keys(team_models={"search": ("main/*",)}))
    for found in (
        keys.identify(asking(authorization=f"Bearer {secret_of('ann')}")),
        keys.find(secret_of("ann")),
        keys.named(ann.id),
        keys.still(Caller(key=ann.id)),
    ):
        assert found is not None
        assert found.team_models == ("main/*",)
    assert keys.identify(asking(authorization=f"Bearer {secret_of('bob')}")).team_models == ()
