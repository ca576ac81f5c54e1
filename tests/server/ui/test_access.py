"""Who may look at the page, and what may be sent from it."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import RequestRefused
from isthmus.server.callers import Keys
from isthmus.server.ended import Ended
from isthmus.server.ui.access import COOKIE, LASTS, MOST_TRIES, Access, Viewer
from isthmus.store.memory import MemoryStore

ADMIN, USER = "admin-key-1234567890", "user-key-1234567890"


def scope(cookie: str = "", origin: str = "", host: str = "gateway:8484") -> Any:
    told = {b"host": host, b"cookie": cookie, b"origin": origin}
    return {"headers": [(name, value.encode()) for name, value in told.items() if value], "path": "/ui"}


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def keyed(clock: Clock | None = None, secret: bytes = b"s" * 32) -> Access:
    return Access(Keys([USER], ADMIN), local=False, secret=secret, ended=Ended(MemoryStore()), now=clock or Clock())


def cookie_of(told: str) -> str:
    return told.partition(";")[0]


async def test_on_the_loopback_without_keys_nobody_is_asked() -> None:
    access = Access(Keys(), local=True, secret=None, ended=Ended(MemoryStore()))
    visitor = await access.visitor(scope())
    assert visitor is not None
    assert visitor.owner is None
    assert visitor.operates


@pytest.mark.parametrize(("keys", "local"), [(Keys(), False), (Keys([USER]), True), (Keys([], ADMIN), True)])
async def test_else_a_key_is_needed(keys: Keys, local: bool) -> None:
    assert await Access(keys, local=local, secret=None, ended=Ended(MemoryStore())).visitor(scope()) is None


def test_without_any_key_there_is_no_way_in_from_other_machines() -> None:
    with pytest.raises(RequestRefused, match=r"server\.admin_key"):
        Access(Keys(), local=False, secret=None, ended=Ended(MemoryStore())).enter("", "peer", secure=False)


async def test_the_admin_sees_everything_and_any_other_key_its_own() -> None:
    access = keyed()
    for key, owner, operates in ((ADMIN, None, True), (USER, "local", False)):
        told = access.enter(key, "peer", secure=True)
        assert "HttpOnly; SameSite=Strict; Secure" in told
        assert key not in told
        visitor = await access.visitor(scope(cookie_of(told)))
        assert visitor is not None
        assert (visitor.owner, visitor.operates) == (owner, operates)


async def test_a_session_of_one_worker_is_one_of_all() -> None:
    told = keyed().enter(ADMIN, "", secure=False)
    assert await keyed().visitor(scope(cookie_of(told))) is not None
    assert await keyed(secret=b"another").visitor(scope(cookie_of(told))) is None


async def test_a_cookie_that_was_changed_anywhere_is_worth_nothing() -> None:
    access = keyed()
    cookie = cookie_of(access.enter(USER, "", secure=False))
    admin = cookie_of(access.enter(ADMIN, "", secure=False)).split(".")[2]
    parts = cookie.split(".")
    assert await access.visitor(scope(".".join([parts[0], parts[1], admin, parts[3]]))) is None
    for at in range(len(COOKIE) + 1, len(cookie)):
        changed = cookie[:at] + ("0" if cookie[at] != "0" else "1") + cookie[at + 1 :]
        assert await access.visitor(scope(changed)) is None, at
    assert await access.visitor(scope(f"{COOKIE}=")) is None
    assert await access.visitor(scope("\x00=;;;=")) is None


async def test_it_ends_by_itself_and_when_its_people_leave() -> None:
    clock = Clock()
    access = keyed(clock)
    first, second = (cookie_of(access.enter(ADMIN, "", secure=False)) for _ in range(2))
    visitor = await access.visitor(scope(first))
    assert visitor is not None
    assert "Max-Age=0" in await access.leave(visitor, secure=False)
    assert await access.visitor(scope(first)) is None
    assert await access.visitor(scope(second)) is not None
    clock.now += LASTS + 1
    assert await access.visitor(scope(second)) is None


def test_keys_cannot_be_tried_one_after_the_other() -> None:
    clock = Clock()
    access = keyed(clock)
    for _ in range(MOST_TRIES):
        with pytest.raises(RequestRefused, match="not known"):
            access.enter("wrong", "here", secure=False)
    with pytest.raises(RequestRefused, match="wait a minute") as refused:
        access.enter(ADMIN, "here", secure=False)
    assert refused.value.meaning.status == 429
    access.enter(ADMIN, "elsewhere", secure=False)
    clock.now += 61
    access.enter(ADMIN, "here", secure=False)


@pytest.mark.parametrize("origin", ["", "null", "http://evil.example", "http://gateway:8485", "http://gateway"])
def test_what_no_page_of_ours_sends_is_refused(origin: str) -> None:
    access = keyed()
    visitor = Viewer(access._keys.find(ADMIN), "word")  # type: ignore[arg-type]  # it is one
    with pytest.raises(RequestRefused, match="not sent by a page"):
        access.check_form(scope(origin=origin), visitor, access.token(visitor))


def test_nor_without_the_word_of_this_very_session() -> None:
    access = keyed()
    mine, other = (Viewer(access._keys.find(ADMIN), word) for word in ("mine", "other"))  # type: ignore[arg-type]
    at = scope(origin="http://gateway:8484")
    access.check_form(at, mine, access.token(mine))
    for token in ("", access.token(other), access.token(None), "é"):
        with pytest.raises(RequestRefused, match="load it again"):
            access.check_form(at, mine, token)
