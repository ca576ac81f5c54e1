"""Digests that are remembered by content are those that would be made anew, and what is remembered is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.store.digests import Digests

contents = st.tuples(st.sampled_from(["ann", "bob"]), st.booleans(), st.binary(max_size=6))


def make(owner: str, is_field: bool, data: bytes) -> bytes:
    return f"{owner} {is_field} {data!r}".encode()


@given(st.lists(contents, max_size=60))
def test_whatever_was_asked_before_the_answer_is_its_own(asked: list[tuple[str, bool, bytes]]) -> None:
    digests = Digests(make, most=4, most_bytes=15)
    for content in asked:
        assert digests.of(*content) == make(*content)
        assert len(digests) <= 8


def test_what_is_asked_for_often_is_made_once_and_what_is_not_is_let_go() -> None:
    made: list[bytes] = []

    def note(owner: str, is_field: bool, data: bytes) -> bytes:
        made.append(data)
        return data

    digests = Digests(note, most=3)
    for number in range(10):
        digests.of("ann", False, b"often")
        digests.of("ann", False, b"%d" % number)
    assert made.count(b"often") == 1
    assert len(digests) <= 6
    digests.of("ann", False, b"0")
    assert made.count(b"0") == 2


def test_large_content_is_not_held_on_to() -> None:
    digests = Digests(make)
    digests.of("ann", False, bytes(1_000_000))
    assert len(digests) == 0
    for number in range(200):
        digests.of("ann", False, number.to_bytes(2, "big") * 30_000)
    assert len(digests) <= 133, "two times four megabytes"
