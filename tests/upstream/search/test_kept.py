"""What was found is kept for its time and within its bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.upstream.search.kept import Kept


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def test_it_is_there_until_its_time_is_over() -> None:
    clock = Clock()
    kept: Kept[str] = Kept(10_000, 60.0, len, clock)
    kept.put("a", "found")
    clock.at = 59.9
    assert kept.get("a") == "found"
    clock.at = 60.0
    assert (kept.get("a"), len(kept)) == (None, 0)


def test_the_longest_unused_goes_first_and_what_is_too_large_is_not_kept() -> None:
    kept: Kept[str] = Kept(2_000, 60.0, len)
    for name in "abc":
        kept.put(name, "x" * 100)
    assert kept.get("a") is not None
    kept.put("d", "x" * 100)
    assert [kept.get(name) is not None for name in "abcd"] == [True, False, True, True]
    kept.put("e", "x" * 5_000)
    assert kept.get("e") is None


def test_with_no_room_or_no_time_nothing_is_kept() -> None:
    for most, ttl in ((0, 60.0), (10_000, 0.0)):
        kept: Kept[str] = Kept(most, ttl, len)
        kept.put("a", "x")
        assert kept.get("a") is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1500)), max_size=60))
def test_it_never_holds_more_than_allowed(puts: list[tuple[int, int]]) -> None:
    kept: Kept[str] = Kept(3_000, 60.0, len)
    for key, size in puts:
        kept.put(key, "x" * size)
        assert sum(entry[1] for entry in kept._entries.values()) == kept._held <= 3_000
