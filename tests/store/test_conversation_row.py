"""Rows of a conversation say when they are not what was written."""

from __future__ import annotations

import pytest

from isthmus.errors import StoreDamaged
from isthmus.store.conversation_row import Item, Row
from isthmus.store.packing import digest_place, hash_piece

ROW = Row(1, "c", "ann", 1.0, 2.0, 3, 3, b"{}")
SEALED = ROW._replace(digest=ROW.seal)
DATA = b'{"id":"i"}'
HASH = hash_piece("ann", False, DATA)
ITEM = Item(0, "i", 0, digest_place("c", 0, "i", 0, HASH), HASH, DATA)


def test_a_row_as_it_was_written_is_told() -> None:
    assert SEALED.damage() is None
    assert (SEALED.record.id, SEALED.record.owner, SEALED.record.created_at) == ("c", "ann", 1.0)


@pytest.mark.parametrize(
    "change", [{"owner": "eve"}, {"next": 4}, {"items": 2}, {"metadata": b"[]"}, {"used_at": object()}]
)
def test_a_row_that_was_changed_is_not(change: dict[str, object]) -> None:
    assert SEALED._replace(**change).damage() == "its row is not as it was written"  # type: ignore[arg-type]


def test_an_item_as_it_was_written_is_told() -> None:
    assert ITEM.read(SEALED) == ITEM.whole(SEALED) == DATA


@pytest.mark.parametrize(
    "change",
    [
        {"position": 1},
        {"ours": 1},
        {"data": b"{}"},
        {"hash": None},
        {"data": None},
        {"item_id": "j"},
        {"ours": object()},
    ],
)
def test_an_item_that_was_changed_is_not(change: dict[str, object]) -> None:
    item = ITEM._replace(**change)  # type: ignore[arg-type]
    assert item.read(SEALED) is None
    with pytest.raises(StoreDamaged, match="is not as it was written"):
        item.whole(SEALED)
