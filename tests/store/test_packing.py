"""What is packed comes back byte for byte, and is packed only where that pays."""

from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.store.packing import hash_piece, pack, pack_list, unpack, unpack_list

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=1200),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=50) | st.text(max_size=3000).map(msgspec.json.encode) | st.just(b'"' + b"ab" * 5000 + b'"'))
@settings(max_examples=200, deadline=None)
def test_what_is_packed_unpacks_to_the_same_bytes(data: bytes) -> None:
    if data[:1] != b"x":  # no JSON starts with an x
        assert unpack(pack(data)) == data


def test_large_repetitive_json_is_packed_and_noise_is_not() -> None:
    assert len(pack(b'{"a":"' + b"word " * 1000 + b'"}')) < 200
    noise = b'"' + random.Random(1).randbytes(5000) + b'"'
    assert pack(noise) is noise


@given(st.lists(json_values.map(msgspec.json.encode), max_size=5))
@settings(max_examples=100, deadline=None)
def test_lists_of_events_come_back_one_by_one(events: list[bytes]) -> None:
    assert unpack_list(pack_list(events)) == events


@pytest.mark.parametrize(("size", "packed"), [(2047, False), (2048, True)])
def test_small_pieces_lie_as_they_are(size: int, packed: bool) -> None:
    data = b'"' + b"a" * (size - 2) + b'"'
    assert (pack(data) is not data) is packed
    assert (pack(data)[:1] == b"x") is packed


def test_what_was_written_unpacked_is_read_as_it_is() -> None:
    assert unpack(b'{"a": 1}') == b'{"a": 1}'
    assert unpack(b"") == b""
    assert unpack_list(b'[{"a":1}, 2]') == [b'{"a":1}', b"2"]


def test_content_is_known_by_its_owner_and_its_kind() -> None:
    hashes = [
        hash_piece(owner, is_field, data)
        for owner, is_field, data in itertools.product(("ann", "bob", ""), (False, True), (b"{}", b"[]", b"[]ann"))
    ]
    assert len(set(hashes)) == len(hashes)
    assert {len(digest) for digest in hashes} == {20}
    assert hash_piece("ann", True, b"{}") == hash_piece("ann", True, b"{}")


def test_hashes_in_files_that_exist_stay_what_they_are() -> None:
    """Another hash would store everything twice."""
    assert hash_piece("local", False, b'{"type":"message"}').hex() == HASH


HASH = "5454d152787702a1def6456f9b26dd6d8052472e"
