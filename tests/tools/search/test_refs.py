"""A session's names for pages are its own, and all of them take no more than allowed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.tools.search.refs import Refs


def test_names_belong_to_their_owner_and_session() -> None:
    refs = Refs(100_000)
    assert [refs.begin("ann", "s"), refs.begin("ann", "s"), refs.begin("bob", "s"), refs.begin("ann", "t")] == [
        0,
        1,
        0,
        0,
    ]
    refs.name("ann", "s", "turn0search0", "https://a.example")
    assert refs.find("ann", "s", "turn0search0") == "https://a.example"
    assert refs.find("bob", "s", "turn0search0") is None
    assert refs.find("ann", "t", "turn0search0") is None


def test_the_longest_unused_session_goes_first() -> None:
    refs = Refs(2_000)
    for session in "abc":
        refs.begin("ann", session)
        refs.name("ann", session, "n", "https://a.example")
        refs.find("ann", "a", "n")
    refs.begin("ann", "a")
    refs.begin("ann", "d")
    refs.name("ann", "d", "n", "https://a.example")
    assert [refs.find("ann", session, "n") is not None for session in "abcd"] == [True, False, True, True]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 2000)), max_size=60))
def test_they_never_take_more_than_allowed(named: list[tuple[str, int, int]]) -> None:
    refs = Refs(5_000)
    for session, number, length in named:
        refs.begin("ann", session)
        refs.name("ann", session, f"turn0search{number}", "u" * length)
        assert refs._held == sum(each.size for each in refs._sessions.values()) <= 5_000
