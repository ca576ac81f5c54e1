"""A response taken apart is put together again byte for byte, or it is said what is wrong with it."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.errors import RequestRefused, StoreDamaged
from isthmus.ports import StoredResponse
from isthmus.store.packing import pack
from isthmus.store.rows import (
    Ancestor,
    Contents,
    ListedPiece,
    check_chain,
    damage_of_events,
    list_history,
    make_turns,
    read_item,
    take_apart,
    whole,
)
from stored import message, turn

RECORD = turn("r", "p", at=5.0, instructions="be kind " * 200)


def stored(record: StoredResponse) -> tuple[list[Any], Contents]:
    columns, hashed = take_apart(record)
    status, model, provider, inside, at, created_at, skeleton, memo, turn_digest, row_digest = columns
    row = [1, record.id, record.owner, record.previous_response_id, created_at, status, model, provider]
    contents = Contents()
    for hash, piece in reversed(hashed):
        contents.take(record.owner, piece.place, piece.position, hash, pack(piece.data))
    contents.close()
    return [*row, inside, skeleton, memo, turn_digest, row_digest, at], contents


def test_it_comes_back_as_it_was() -> None:
    row, contents = stored(RECORD)
    assert whole(tuple(row), contents) == RECORD


@pytest.mark.parametrize(
    ("column", "value", "says"),
    [
        (1, "other", "not the turn"),
        (2, "eve", "not the turn"),
        (4, 6.0, "its row"),
        (5, "failed", "not the turn"),
        (9, b"{}", "its row"),
        (10, b"memo", "its row"),
        (13, object(), None),
    ],
)
def test_a_column_that_was_changed_is_noticed(column: int, value: Any, says: str | None) -> None:
    row, contents = stored(RECORD)
    row[column] = value
    found = whole(tuple(row), contents)
    if says is None:  # where it stood counts only in a conversation
        assert isinstance(found, StoredResponse)
    else:
        assert isinstance(found, str)
        assert says in found


def test_a_piece_that_was_changed_is_named() -> None:
    contents = Contents()
    contents.take("local", 1, 3, b"hash", b"{}")
    contents.close()
    assert contents.damage == "its output item 3 is not as it was written"


def test_events_are_compared_with_their_digest() -> None:
    assert damage_of_events(0, 1, b"[1,2]", None) is None
    assert damage_of_events(0, 2, b"[1,2]", None) == "its events 0 to 2 are not as they were written"
    assert damage_of_events(0, 1, b"[1,2]", b"x") == "its events 0 to 1 are not as they were written"


def ancestor(id: str, previous: str | None, *, deleted: int = 0) -> Ancestor:
    return Ancestor(hash(id), id, previous, "completed", "m", "p", deleted, None, None, 0)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], "previous_response_not_found"),
        ([ancestor("b", "a")], "previous_response_not_found"),
        ([ancestor("b", "a"), ancestor("a", None, deleted=1)], "previous_response_not_found"),
        ([ancestor(f"r{at}", f"r{at + 1}") for at in range(4)], "previous_response_chain_too_long"),
    ],
)
def test_a_chain_that_cannot_be_continued_is_refused(rows: list[Ancestor], code: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        check_chain(rows, "b", 3)
    assert refused.value.code == code


def test_turns_come_the_oldest_first_and_their_items_by_name() -> None:
    rows = [ancestor("b", "a"), ancestor("a", None)]
    check_chain(rows, "b", 3)
    assert [each.id for each in make_turns(rows, {row.key: Contents() for row in rows}, "local", "b")] == ["a", "b"]
    places = [
        ListedPiece(hash("b"), 0, 0, 3, "own", b""),
        ListedPiece(hash("b"), 1, 0, 4, None, b""),
        ListedPiece(hash("a"), 1, 0, 2, None, b""),
        ListedPiece(hash("a"), 0, 0, 1, None, b""),
    ]
    assert list_history(rows, places, "local", "b") == [("in0_a", 1), ("out0_a", 2), ("own", 3)]


def test_an_item_under_another_name_is_damage() -> None:
    from isthmus.store.packing import hash_piece

    data = message("hi", "mine")
    known = hash_piece("ann", False, data)
    assert read_item("ann", "mine", "mine", known, data) == data
    assert read_item("ann", "MINE", "MINE", known, data, stored=str.upper) == data
    for item_id, owner in (("other", "ann"), (None, "ann"), ("mine", "eve")):
        with pytest.raises(StoreDamaged):
            read_item(owner, "mine", item_id, known, data)
