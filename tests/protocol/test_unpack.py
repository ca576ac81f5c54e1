"""Packed bodies, undone piece by piece: whole, cut anywhere, broken, and never more at once than was asked for."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.protocol.unpack import can_unpack, find_unpacker


def unpack(named: str, pieces: list[bytes], step: int = 64) -> list[bytes]:
    unpacker = find_unpacker(named, step)
    assert unpacker is not None
    out = [each for piece in pieces for each in unpacker.feed(piece)]
    unpacker.end()
    return out


@given(st.binary(max_size=2000), st.lists(st.integers(0, 2000), max_size=5), st.sampled_from(["gzip", "deflate"]))
def test_law_however_it_is_cut_it_is_the_same(data: bytes, cuts: list[int], named: str) -> None:
    packed = gzip.compress(data) if named == "gzip" else zlib.compress(data)
    at = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    out = unpack(named, [packed[a:b] for a, b in pairwise(at)])
    assert b"".join(out) == data
    assert all(len(piece) <= 64 for piece in out)


@pytest.mark.parametrize("named", ["gzip", "deflate", "zstd", " X-GZIP "])
def test_what_is_not_packed_so_is_a_value_error(named: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unpack(named, [b"\x01 this is no such thing"])


def test_what_is_cut_off_is_told_at_the_end() -> None:
    with pytest.raises(ValueError, match="cut off"):
        unpack("gzip", [gzip.compress(b"words")[:-1]])


@pytest.mark.parametrize(
    ("named", "can"), [("", True), ("identity", True), ("GZip", True), ("br", False), ("x", False)]
)
def test_what_can_be_unpacked(named: str, can: bool) -> None:
    assert can_unpack(named) == can
    assert (find_unpacker(named, 1) is not None) == (can and named not in ("", "identity"))
