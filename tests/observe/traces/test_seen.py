"""Pieces that are remembered: found by where they stand and by their bytes, and never too many."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isthmus.observe.traces.seen import Key, Seen
from isthmus.ports.traced import Piece


def piece(key: Key) -> Piece:
    return Piece(key[0], len(key[1]), key[1].hex())


def ask(seen: Seen, key: Key) -> Piece:
    """As `Bodies` asks: what is not found is made and noted."""
    found = seen.find(key)
    if found is None:
        found = seen.recall(key, None) or piece(key)
        seen.note(key, found)
    return found


keys = st.tuples(st.sampled_from(["model", "input[0]", "input[1]"]), st.binary(max_size=40))


@given(st.lists(keys, max_size=60))
def test_every_piece_is_its_own_and_there_are_never_too_many_nor_too_long(asked: list[Key]) -> None:
    seen = Seen(most=10, most_bytes=300)
    for key in asked:
        assert ask(seen, key) == piece(key)
        count, size = seen.held
        assert count <= 10
        assert size <= 300


def test_what_was_seen_is_found_again_at_its_place_only() -> None:
    seen = Seen()
    made = ask(seen, ("input[0]", b"words"))
    assert seen.find(("input[0]", b"words")) is made
    assert seen.find(("input[1]", b"words")) is None
    assert seen.find(("input[0]", b"other")) is None


def test_what_is_asked_for_again_stays_and_the_rest_goes() -> None:
    seen = Seen(most=8)
    for number in range(40):
        ask(seen, ("tools[0]", b"with every turn"))
        ask(seen, ("input[0]", b"%d" % number))
    assert seen.find(("tools[0]", b"with every turn")) or seen.recall(("tools[0]", b"with every turn"), None)
    assert seen.find(("input[0]", b"1")) is None
    assert seen.recall(("input[0]", b"1"), None) is None


def test_what_is_too_large_for_others_to_stay_is_not_remembered() -> None:
    seen = Seen(most_bytes=800)
    kept = ask(seen, ("model", b"m"))
    ask(seen, ("input[0]", b"x" * 500))
    assert seen.find(("model", b"m")) is kept
    assert seen.held[0] == 1
