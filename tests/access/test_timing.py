"""How long a key is looked at says nothing about it.

CPU time, not the clock on the wall; samples of all kinds taken in turn, so that whatever else the machine does falls on
all of them; and the middle of many, so that a few bad moments change nothing. That the measure sees what it is for is
shown by two checks of keys that are wrong in the usual ways.
"""

from __future__ import annotations

import random
import secrets
import statistics
import time
from collections.abc import Callable, Mapping

import pytest

from isthmus.access.book import Book
from isthmus.access.secret import new_key
from isthmus.gateway.caller import Caller
from isthmus.server.callers import Keys, caller_with
from isthmus.store.memory import MemoryStore
from keyed import deed, stored_key

pytestmark = pytest.mark.measured

ROUNDS = 300
CALLS = 40
"""In one sample."""
TOLERATED = 0.12
"""Of the time that a check takes: a comparison that ends with the first difference, or is left out, is far above."""


def spread(check: Callable[[str], object], kinds: Mapping[str, Callable[[], str]]) -> float:
    """By which part of it the middle times of the slowest and the quickest kind differ."""
    taken: dict[str, list[int]] = {kind: [] for kind in kinds}
    order = list(kinds)
    chance = random.Random(7)
    for _ in range(ROUNDS):
        chance.shuffle(order)
        for kind in order:
            keys = [kinds[kind]() for _ in range(CALLS)]
            began = time.thread_time_ns()
            for key in keys:
                check(key)
            taken[kind].append(time.thread_time_ns() - began)
    middles = [statistics.median(times) for times in taken.values()]
    return (max(middles) - min(middles)) / min(middles)


async def keys_and_kinds() -> tuple[Keys, list[str], dict[str, Callable[[], str]]]:
    store = MemoryStore()
    good, revoked = [new_key() for _ in range(50)], [new_key() for _ in range(50)]
    for number, secret in enumerate(good):
        await store.add_key(stored_key(f"g{number}", secret), deed())
    for number, secret in enumerate(revoked):
        await store.add_key(stored_key(f"r{number}", secret, revoked_at=1.0), deed())
    book: Book[Caller] = Book(store, caller_with)
    await book.look()
    configured = ["sk-" + secrets.token_hex(23) for _ in range(2)]
    kinds = {
        "unknown": new_key,
        "nothing like a key": lambda: secrets.token_hex(23),
        "all but its last character": lambda: secrets.choice(good)[:-1] + "!",
        "the prefix that is shown": lambda: secrets.choice(good)[:10] + secrets.token_hex(18),
        "all but the last of a configured one": lambda: secrets.choice(configured)[:-1] + "!",
        "revoked": lambda: "".join(secrets.choice(revoked)),
        "in force": lambda: "".join(secrets.choice(good)),
    }
    return Keys(configured, book=book), good, kinds


async def test_the_time_of_a_check_tells_nothing() -> None:
    keys, _, kinds = await keys_and_kinds()
    assert keys.find(kinds["in force"]()) is not None
    assert keys.find(kinds["all but its last character"]()) is None
    # Once more where it was much, for nobody knows what the machine was at; a leak is there every time.
    assert min(spread(keys.find, kinds) for _ in range(3)) < TOLERATED


def by_comparing(good: list[str]) -> Callable[[str], object]:
    def check(key: str) -> bool:
        for each in good:
            for one, two in zip(key, each, strict=False):
                if one != two:
                    break
            else:
                return True
        return False

    return check


def by_asking_only_for_plausible_ones(good: list[str], keys: Keys) -> Callable[[str], object]:
    prefixes = {key[:10] for key in good}
    return lambda key: keys.find(key) if key[:10] in prefixes else None


def by_hashing_only_what_looks_like_a_key(keys: Keys) -> Callable[[str], object]:
    return lambda key: keys.find(key) if key.startswith("ik_") else None


@pytest.mark.parametrize("wrong", ["comparing", "plausible", "looks"])
async def test_the_measure_sees_a_check_that_tells(wrong: str) -> None:
    keys, good, kinds = await keys_and_kinds()
    check = {
        "comparing": by_comparing(good),
        "plausible": by_asking_only_for_plausible_ones(good, keys),
        "looks": by_hashing_only_what_looks_like_a_key(keys),
    }[wrong]
    assert min(spread(check, kinds) for _ in range(2)) > 2 * TOLERATED
