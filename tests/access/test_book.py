"""The book of keys: what it knows, for how long it is believed, and that a failing store is no way in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from isthmus.access.book import PACE, Book
from isthmus.access.secret import digest_of
from isthmus.errors import StoreDamaged, StoreUnavailable
from isthmus.ports.keys import StoredKey
from isthmus.store.memory import MemoryStore
from keyed import NOW, deed, secret_of, stored_key
from own_time import clock, run_in_own_time, turns

ANN = stored_key("ann")


class FlakyStore(MemoryStore):
    """Says what it is told to say."""

    trouble: Exception | None = None
    asked = 0
    read = 0

    async def keys_mark(self) -> int:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return await super().keys_mark()

    async def keys(self) -> list[StoredKey]:
        self.read += 1
        return await super().keys()


def book_of(store: MemoryStore, at: float = NOW, **options: Any) -> Book[str]:
    return Book(store, lambda key: key.name, now=lambda: at, **options)


def find(book: Book[str], name: str) -> str | None:
    return book.find(digest_of(secret_of(name)))


async def test_it_knows_whose_key_it_is_and_which_are_over() -> None:
    store = MemoryStore()
    for each in (
        ANN,
        stored_key("gone", revoked_at=NOW - 1),
        stored_key("old", expires_at=NOW),
        stored_key("soon", expires_at=NOW + 0.1),
    ):
        await store.add_key(each, deed())
    book = book_of(store)
    await book.look()
    book.check()
    names = ("ann", "gone", "old", "soon", "nobody")
    assert {name: find(book, name) for name in names} == {
        "ann": "ann",
        "gone": "over",
        "old": "over",
        "soon": "soon",
        "nobody": None,
    }
    assert [book.named(stored_key(name).id) for name in names] == ["ann", None, None, "soon", None]
    assert book.find(bytes(32)) is None, "what stands for nobody is nobody's key"


async def test_expiry_is_looked_at_with_each_use() -> None:
    store, at = MemoryStore(), [NOW]
    await store.add_key(stored_key("ann", expires_at=NOW + 10), deed())
    book: Book[str] = Book(store, lambda key: key.name, now=lambda: at[0])
    await book.look()
    assert find(book, "ann") == "ann"
    at[0] = NOW + 10
    assert find(book, "ann") == "over"
    assert book.named(stored_key("ann").id) is None


async def test_the_key_before_opens_until_its_time_is_over_and_no_longer_than_the_key() -> None:
    store = MemoryStore()
    old = digest_of(secret_of("before"))
    rotated = stored_key("ann", previous=old, previous_until=NOW + 5)
    await store.add_key(rotated, deed())
    for at, found in ((NOW, "ann"), (NOW + 5, "over")):
        book = book_of(store, at)
        await book.look()
        assert book.find(old) == found
        assert find(book, "ann") == "ann"
    await store.change_key(replace(rotated, revoked_at=NOW), deed("key.revoke"), was=rotated)
    book = book_of(store)
    await book.look()
    assert (book.find(old), find(book, "ann")) == ("over", "over")


async def test_once_there_was_a_key_one_is_needed() -> None:
    store = MemoryStore()
    book = book_of(store)
    await book.look()
    assert not book.needed
    await store.add_key(ANN, deed())
    await book.look()
    assert book.needed
    await store.change_key(replace(ANN, revoked_at=NOW), deed("key.revoke"), was=ANN)
    await book.look()
    assert book.needed, "the end of the last key is no invitation"


def test_a_change_is_heard_within_a_second_and_read_once() -> None:
    async def ask() -> None:
        store = FlakyStore()
        book = book_of(store)
        await book.look()
        clock().stop_clock()
        book.start()
        await turns()
        await store.add_key(ANN, deed())
        clock().skip(PACE)
        await turns()
        assert find(book, "ann") == "ann"
        await store.change_key(replace(ANN, revoked_at=NOW), deed("key.revoke"), was=ANN)
        clock().skip(PACE)
        await turns()
        assert find(book, "ann") == "over"
        read, asked = store.read, store.asked
        for _ in range(10):
            clock().skip(PACE)
            await turns()
        assert (store.read - read, store.asked - asked) == (0, 10), "asked, and not read again"
        await book.aclose()

    assert PACE * 2 < 1
    run_in_own_time(ask())


@pytest.mark.parametrize("trouble", [StoreUnavailable("it was deleted"), StoreDamaged("key_1"), ValueError("a bug")])
def test_a_store_that_is_away_is_believed_for_a_while_and_then_nobody_is_let_in(trouble: Exception) -> None:
    async def ask() -> None:
        store = FlakyStore()
        await store.add_key(ANN, deed())
        book = book_of(store, stale=60.0, alone=True)
        await book.look()
        clock().stop_clock()
        book.start()
        await turns()
        store.trouble = trouble
        for _ in range(59):
            clock().skip(1.0)
            await turns()
            book.check()
        assert find(book, "ann") == "ann"
        clock().skip(2.0)
        await turns()
        with pytest.raises(StoreUnavailable, match=r"not said for 61 s .*`server.stale_keys`") as caught:
            book.check()
        assert str(trouble) in str(caught.value)
        assert caught.value.meaning.status == 503
        store.trouble = None
        clock().skip(1.0)
        await turns()
        book.check()
        await book.aclose()

    run_in_own_time(ask())


def test_a_store_that_does_not_answer_is_away_too() -> None:
    class Silent(MemoryStore):
        async def keys_mark(self) -> int:
            await asyncio.Event().wait()
            raise AssertionError

    async def ask() -> None:
        clock().stop_clock()
        book = book_of(Silent())
        looking = asyncio.ensure_future(book.look())
        await turns()
        clock().skip(10.0)
        with pytest.raises(TimeoutError):
            await looking
        with pytest.raises(StoreUnavailable, match="for long"):
            book.check()

    run_in_own_time(ask())


@pytest.mark.parametrize(("alone", "open"), [(True, True), (False, False)])
def test_without_a_key_so_far_only_a_machine_of_its_own_goes_on(alone: bool, open: bool) -> None:
    async def ask() -> None:
        store = FlakyStore()
        book = book_of(store, stale=60.0, alone=alone)
        with pytest.raises(StoreUnavailable):
            book.check()  # nothing was read yet
        await book.look()
        clock().stop_clock()
        store.trouble = StoreUnavailable("away")
        clock().skip(61.0)
        if open:
            book.check()
        else:
            with pytest.raises(StoreUnavailable):
                book.check()

    run_in_own_time(ask())


async def test_what_changes_while_it_is_read_is_read_with_the_next_look() -> None:
    class Changing(MemoryStore):
        async def keys(self) -> list[StoredKey]:
            found = await super().keys()
            if not found:
                await self.add_key(ANN, deed())
            return found

    book = book_of(Changing())
    await book.look()
    assert find(book, "ann") is None
    await book.look()
    assert find(book, "ann") == "ann"
