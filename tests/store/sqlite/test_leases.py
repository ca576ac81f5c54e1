"""Leases as statements: the contract is asked of every store in `store/test_leases`; here, row by row."""

from __future__ import annotations

import sqlite3

import pytest

from every_store import Clock
from isthmus.ports import Held, Signal
from isthmus.store.sqlite.leases import claim, may_write, release, renew, sweep, tell
from isthmus.store.sqlite.writes import delete_response, save_response
from stored import turn


def rows(connection: sqlite3.Connection) -> list[tuple[str, str, str, float, str]]:
    return connection.execute("SELECT owner, name, holder, until, words FROM leases ORDER BY owner, name").fetchall()


@pytest.fixture
def now() -> Clock:
    return Clock()


def test_a_lease_is_one_row(connection: sqlite3.Connection, now: Clock) -> None:
    assert claim(connection, "ann", "run:r1", "a", 10, now)
    assert rows(connection) == [("ann", "run:r1", "a", now.at + 10, "[]")]
    now.at += 5
    assert claim(connection, "ann", "run:r1", "a", 10, now)
    assert rows(connection) == [("ann", "run:r1", "a", now.at + 10, "[]")]


@pytest.mark.parametrize(("later", "free"), [(0, False), (9.9, False), (10, True), (-3600, False)])
def test_somebody_elses_is_left_as_it_is_until_its_very_end(
    connection: sqlite3.Connection, now: Clock, later: float, free: bool
) -> None:
    claim(connection, "ann", "run:r1", "a", 10, now)
    before = rows(connection)
    now.at += later
    assert claim(connection, "ann", "run:r1", "b", 10, now) is free
    assert (rows(connection) == before) is not free


@pytest.mark.parametrize(("later", "words"), [(5, '["cancel"]'), (10, "[]")])
def test_extending_keeps_the_words_and_beginning_anew_does_not(
    connection: sqlite3.Connection, now: Clock, later: float, words: str
) -> None:
    claim(connection, "ann", "run:r1", "a", 10, now)
    assert tell(connection, "ann", "run:r1", "cancel", now)
    now.at += later
    assert claim(connection, "ann", "run:r1", "a", 10, now)
    assert rows(connection)[0][4] == words


def test_words_are_told_once_in_their_order_and_heard_once(connection: sqlite3.Connection, now: Clock) -> None:
    assert not tell(connection, "ann", "run:r1", "cancel", now)
    claim(connection, "ann", "run:r1", "a", 10, now)
    for word in ("cancel", 'é "quoted"', "cancel"):
        assert tell(connection, "ann", "run:r1", word, now)
    heard = renew(connection, "a", 10, now)
    assert heard.signals == (Signal("ann", "run:r1", "cancel"), Signal("ann", "run:r1", 'é "quoted"'))
    assert renew(connection, "a", 10, now) == Held(frozenset({("ann", "run:r1")}), ())
    now.at += 10
    assert not tell(connection, "ann", "run:r1", "cancel", now)


def test_renewing_extends_ones_own_that_live_and_no_others(connection: sqlite3.Connection, now: Clock) -> None:
    claim(connection, "bob", "run:r1", "a", 10, now)
    claim(connection, "ann", "run:r2", "a", 5, now)
    claim(connection, "ann", "run:r3", "b", 10, now)
    now.at += 5
    assert renew(connection, "a", 10, now).names == {("bob", "run:r1")}
    assert [until for *_, until, _ in rows(connection)] == [now.at, now.at + 5, now.at + 10]


def test_only_its_holder_gives_a_lease_back(connection: sqlite3.Connection, now: Clock) -> None:
    claim(connection, "ann", "run:r1", "a", 10, now)
    for owner, name, holder in (("ann", "run:r1", "b"), ("bob", "run:r1", "a"), ("ann", "run:r2", "a")):
        release(connection, owner, name, holder)
        assert len(rows(connection)) == 1
    release(connection, "ann", "run:r1", "a")
    assert rows(connection) == []


def test_sweeping_takes_what_has_ended(connection: sqlite3.Connection, now: Clock) -> None:
    claim(connection, "ann", "run:r1", "a", 10, now)
    claim(connection, "ann", "run:r2", "a", 10.5, now)
    now.at += 10
    sweep(connection, now)
    assert [name for _, name, *_ in rows(connection)] == ["run:r2"]


@pytest.mark.parametrize(
    ("status", "held_by", "allowed"),
    [
        (None, None, True),
        (None, "a", True),
        (None, "b", False),
        ("queued", None, True),
        ("in_progress", "a", True),
        ("in_progress", "b", False),
        ("completed", None, False),
        ("completed", "a", False),
        ("failed", "b", False),
        ("deleted", None, True),
    ],
)
def test_a_response_is_for_its_holder_to_write_until_somebody_has_finished_it(
    connection: sqlite3.Connection, now: Clock, status: str | None, held_by: str | None, allowed: bool
) -> None:
    """One that was deleted is left to `save`, which knows that it stays so."""
    if status is not None:
        save_response(connection, turn("r1", status=status if status != "deleted" else "queued", owner="ann"))
    if status == "deleted":
        delete_response(connection, "r1", "ann")
    if held_by is not None:
        claim(connection, "ann", "run:r1", held_by, 10, now)
    assert may_write(connection, "ann", "r1", "a", now) is allowed
    now.at += 10
    assert may_write(connection, "ann", "r1", "a", now) is (status not in ("completed", "failed")), "it has ended"


def test_a_lease_on_something_else_is_in_nobodys_way(connection: sqlite3.Connection, now: Clock) -> None:
    for owner, name in (("bob", "run:r1"), ("ann", "run:r10"), ("ann", "conversation:r1")):
        claim(connection, owner, name, "b", 10, now)
    assert may_write(connection, "ann", "r1", "a", now)
