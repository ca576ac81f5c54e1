"""What was switched at one gateway, all others on its store do, also those that start later."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from every_store import Clock, every_shared_store
from isthmus.access.book import Book
from isthmus.errors import StoreUnavailable
from isthmus.observe.traces.tracer import Tracer
from isthmus.ports import Store
from isthmus.ports.keys import Deed
from isthmus.server.switches import CAPTURE, MOST_LOOKED_AT, obeying
from isthmus.store.memory import MemoryStore
from keyed_gateway import Person, keyed_gateway
from postgres import database_of
from talking import Talk
from waiting import until as wait


def tracer() -> Tracer:
    nobody: Any = None
    return Tracer(nobody)


def book(store: Store, obeys: Tracer) -> Book[str]:
    return Book(store, lambda key: key.name, obey=obeying(store, obeys))


def switch(at: float, **details: str) -> Deed:
    return Deed(at, "cli", CAPTURE, "", details)


@every_shared_store
async def test_full_capture_is_switched_on_and_off_for_all(one: Store, two: Store, clock: Clock) -> None:
    there = tracer()
    looks = book(two, there)
    await looks.look()
    assert not there.wants_all("team", "", 1)
    await one.note_deed(switch(time.time(), seconds="60", owner="team", key=""))
    await looks.look()
    assert there.wants_all("team", "", 1)
    assert not there.wants_all("another", "", 1)
    later = tracer()
    await book(two, later).look()
    assert later.wants_all("team", "", 1), "one that starts later"
    await one.note_deed(switch(time.time(), seconds="0"))
    await looks.look()
    assert not there.wants_all("team", "", 1)


@pytest.mark.parametrize("details", [{"seconds": "60"}, {"seconds": "soon"}, {}])
async def test_what_is_over_or_cannot_be_read_captures_nothing(details: dict[str, str]) -> None:
    store, here = MemoryStore(), tracer()
    await store.note_deed(switch(time.time() - 61, **details))
    await book(store, here).look()
    assert not here.wants_all("", "", 1)


async def test_of_many_deeds_the_last_switch_counts_and_no_more_are_read_than_a_bound() -> None:
    store, here = MemoryStore(), tracer()
    await store.note_deed(switch(time.time(), seconds="60"))
    for number in range(MOST_LOOKED_AT - 1):
        await store.note_deed(Deed(time.time(), "cli", "page.enter", str(number)))
    await book(store, here).look()
    assert here.wants_all("", "", 1)
    await store.note_deed(Deed(time.time(), "cli", "page.enter", "one more"))
    late = tracer()
    await book(store, late).look()
    await book(store, here).look()
    assert (here.wants_all("", "", 1), late.wants_all("", "", 1)) == (True, False)


@pytest.fixture(params=["sqlite", "postgres"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Person]]:
    """The operator at two gateways on one store."""
    store = f"sqlite:{tmp_path / 'x.db'}" if request.param == "sqlite" else database_of(tmp_path)
    with keyed_gateway(store, trace="metadata") as one, keyed_gateway(store, trace="metadata") as other:
        yield [one.chief, other.chief]


def test_full_capture_reaches_the_other_gateway_over_http(two: list[Person]) -> None:
    path = "/v1/isthmus/traces/capture"
    until = two[0].post(path, {"seconds": 600, "key": "key_1"}).json["full_until"]

    def capturing(person: Person) -> dict[str, Any]:
        found: dict[str, Any] = person.get(path).json
        return found

    wait(lambda: "full_until" in capturing(two[1]), "the other one was never told")
    heard = capturing(two[1])
    assert (heard["full_until"], heard["key"]) == (pytest.approx(until, abs=5), "key_1")
    two[1].post(path, {"seconds": 0})
    wait(lambda: "full_until" not in capturing(two[0]), "nobody was told that it is over")


def test_a_session_that_was_ended_at_one_gateway_is_over_at_the_other(two: list[Person]) -> None:
    cookie = {"cookie": log_in(two[0])}

    def look(person: Person) -> int:
        return Talk(person.url).request("GET", "/ui/settings", None, cookie).status

    assert [look(person) for person in two] == [200, 200]
    page = Talk(two[0].url).request("GET", "/ui/settings", None, cookie).body.decode()
    own = {"origin": two[0].url, "content-type": "application/x-www-form-urlencoded", **cookie}
    left = Talk(two[0].url).request("POST", "/ui/logout", f"token={word_of(page)}".encode(), own)
    assert left.status == 303
    assert 200 not in [look(person) for person in two], "at once"


def test_while_the_store_cannot_say_who_left_nobody_is_let_in_and_the_page_says_why() -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise StoreUnavailable("the store is away")

    with keyed_gateway() as gateway:
        cookie = {"cookie": log_in(gateway.chief)}
        gateway.server.gateway.store.named_request = away  # type: ignore[method-assign]
        shown = Talk(gateway.server.url).request("GET", "/ui/settings", None, cookie)
        assert (shown.status, shown.headers["content-type"].partition(";")[0]) == (503, "text/html")
        assert "the store is away" in shown.body.decode()
        assert "admin_key" not in shown.body.decode()


def log_in(person: Person) -> str:
    form = {"origin": person.url, "content-type": "application/x-www-form-urlencoded"}
    token = word_of(Talk(person.url).get("/ui/login").body.decode())
    entered = Talk(person.url).request("POST", "/ui/login", f"token={token}&key={person.secret}".encode(), form)
    assert entered.status == 303, entered.body
    return entered.headers["set-cookie"].partition(";")[0]


def word_of(page: str) -> str:
    found = re.search(r'name="token" value="([0-9a-f]+)"', page)
    assert found is not None, page
    return found[1]


def test_without_traces_there_is_nothing_to_switch() -> None:
    assert obeying(MemoryStore(), None) is None
