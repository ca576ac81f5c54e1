"""Pieces shared by counting, and streams that drop their oldest: every byte is counted, and given back."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ports import EventBatch
from isthmus.store.memory_parts import Pool, Shared, Stream
from isthmus.store.pieces import FIELD, INPUT, OUTPUT, Piece


def item(text: str, id: str | None = None, place: int = INPUT) -> Piece:
    return Piece(place, 0, msgspec.json.encode({"text": text} if id is None else {"id": id, "text": text}))


def test_equal_items_of_one_owner_are_one_wherever_they_stand() -> None:
    pool = Pool()
    one, two = pool.take("ann", item("same")), pool.take("ann", item("same", place=OUTPUT))
    assert one is two
    assert (one.holders, len(pool), pool.size) == (2, 1, len('{"text":"same"}'))


@pytest.mark.parametrize(
    ("owner", "piece"),
    [("bob", item("same")), ("ann", item("same", place=FIELD)), ("ann", item("other"))],
    ids=["another owner", "a field", "other content"],
)
def test_anything_else_is_its_own(owner: str, piece: Piece) -> None:
    pool = Pool()
    assert pool.take("ann", item("same")) is not pool.take(owner, piece)
    assert len(pool) == 2


def test_a_piece_is_gone_with_its_last_holder() -> None:
    pool = Pool()
    held = [pool.take("ann", item("same", "msg_1")) for _ in range(2)]
    pool.release(held[0])
    assert pool.find("ann", "msg_1") is held[1]
    pool.release(held[1])
    assert (len(pool), pool.size, pool.find("ann", "msg_1")) == (0, 0, None)
    again = pool.take("ann", item("same", "msg_1"))
    assert (again.holders, pool.size) == (1, len(again.data))


def test_an_id_used_twice_names_the_first_that_is_left() -> None:
    pool = Pool()
    first, second = (pool.take("ann", item(text, "msg_1")) for text in ("first", "second"))
    assert pool.find("ann", "msg_1") is first
    assert pool.find("bob", "msg_1") is None
    pool.release(first)
    assert pool.find("ann", "msg_1") is second


takes = st.tuples(
    st.sampled_from(["ann", "bob"]), st.sampled_from(["a", "bb", "ccc"]), st.sampled_from([None, "x", "y"])
)


@given(st.lists(takes, max_size=20), st.randoms(use_true_random=False))
def test_whatever_is_taken_and_given_back_the_pool_knows_what_it_holds(
    given_takes: list[tuple[str, str, str | None]], chance: object
) -> None:
    pool, held = Pool(), []
    for owner, text, id in given_takes:
        held.append(pool.take(owner, item(text, id)))
        _agree(pool, held)
        if chance.random() < 0.4:  # type: ignore[attr-defined]
            pool.release(held.pop(chance.randrange(len(held))))  # type: ignore[attr-defined]
            _agree(pool, held)
    while held:
        pool.release(held.pop())
    assert (len(pool), pool.size, pool._by_item) == (0, 0, {})


def _agree(pool: Pool, held: list[Shared]) -> None:
    distinct = {(shared.owner, shared.data) for shared in held}
    assert len(pool) == len(distinct)
    assert pool.size == sum(len(data) for _, data in distinct)


# ── streams ────────────────────────────────────────────────────────────────────────────────────────────


def batch(first: int, *events: bytes) -> EventBatch:
    return EventBatch(first, events)


def test_batches_follow_one_another() -> None:
    stream = Stream()
    assert stream.append(batch(5, b"a", b"bb"), 100) == 3, "the first may begin anywhere"
    for first in (0, 5, 6, 8):
        with pytest.raises(ValueError, match=f"event {first} does not follow: expected 7"):
            stream.append(batch(first, b"x"), 100)
    assert stream.append(batch(7), 100) == 0
    assert stream.append(batch(7, b"c"), 100) == 1
    assert (stream.read(-1), stream.read(5), stream.read(7)) == ([b"a", b"bb", b"c"], [b"bb", b"c"], [])


def test_the_oldest_go_first_and_the_newest_never() -> None:
    stream = Stream()
    for first in range(4):
        stream.append(batch(first, b"12345"), 12)
    assert (stream.read(-1), stream.dropped, stream.size) == ([b"12345"] * 2, 1, 10)
    assert stream.append(batch(4, b"x" * 50), 12) == 40
    assert (stream.read(-1), stream.dropped) == ([b"x" * 50], 3)


@given(st.lists(st.lists(st.binary(max_size=5), max_size=4), max_size=10), st.integers(0, 20))
def test_what_is_kept_is_the_end_of_what_was_told_within_its_bound(told: list[list[bytes]], bound: int) -> None:
    stream, everything, total = Stream(), [], 0
    for events in told:
        total += stream.append(EventBatch(len(everything), tuple(events)), bound)
        everything += events
    kept = stream.read(-1)
    assert kept == everything[len(everything) - len(kept) :]
    assert stream.dropped == len(everything) - len(kept) - 1
    assert stream.size == total == sum(map(len, kept))
    assert stream.size <= bound or len(stream.batches) == 1
    for after in range(stream.dropped, len(everything)):
        assert stream.read(after) == everything[after + 1 :]
