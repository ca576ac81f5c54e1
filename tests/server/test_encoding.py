"""Compressed bodies, undone in whatever pieces they come."""

from __future__ import annotations

import zlib

import pytest

from isthmus.errors import RequestRefused
from isthmus.server.encoding import STEP, find_decoder
from packing import packed

TEXT = b"".join(b"line %d of a body that packs well\n" % number for number in range(2000))


def unpack(encoding: str, *pieces: bytes) -> bytes:
    decoder = find_decoder(encoding)
    assert decoder is not None
    out = b"".join(part for piece in pieces for part in decoder.feed(piece))
    decoder.end()
    return out


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("size", [1, 7, 1000, 10**6])
def test_it_comes_out_as_it_went_in(encoding: str, size: int) -> None:
    data = packed(encoding, TEXT)
    assert unpack(encoding, *(data[at : at + size] for at in range(0, len(data), size))) == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_it_comes_out_in_steps(encoding: str) -> None:
    decoder = find_decoder(encoding)
    assert decoder is not None
    steps = [len(part) for part in decoder.feed(packed(encoding, b"0" * (3 * STEP + 5)))]
    assert sum(steps) == 3 * STEP + 5
    assert max(steps) <= STEP


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_several_may_follow_one_another(encoding: str) -> None:
    data = packed(encoding, b"one ") + packed(encoding, b"") + packed(encoding, b"two")
    assert unpack(encoding, data) == b"one two"
    assert unpack(encoding, *(data[at : at + 1] for at in range(len(data)))) == b"one two"


@pytest.mark.parametrize("size", [1, 2, 100])
def test_deflate_may_lack_its_head(size: int) -> None:
    data = zlib.compress(TEXT, wbits=-zlib.MAX_WBITS)
    assert unpack("deflate", *(data[at : at + size] for at in range(0, len(data), size))) == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("spoil", [lambda data: data[:-5], lambda data: b"no" + data, lambda data: data + b"behind it"])
def test_what_is_broken_is_refused(encoding: str, spoil: object) -> None:
    assert callable(spoil)
    with pytest.raises(RequestRefused) as refused:
        unpack(encoding, spoil(packed(encoding, TEXT)))
    assert (refused.value.meaning.status, refused.value.param) == (400, "Content-Encoding")


def test_a_zstd_frame_that_wants_too_large_a_window_is_refused() -> None:
    """It would make us take as much memory before it says a word."""
    magic, no_size_and_window, of_2_to_the_27 = b"\x28\xb5\x2f\xfd", b"\x00", bytes([(27 - 10) << 3])
    with pytest.raises(RequestRefused, match="zstd"):
        unpack("zstd", magic + no_size_and_window + of_2_to_the_27 + b"\x01\x00\x00")


@pytest.mark.parametrize("name", ["", "identity", " Identity "])
def test_there_may_be_nothing_to_undo(name: str) -> None:
    assert find_decoder(name) is None


@pytest.mark.parametrize("name", ["br", "compress", "gzip, zstd", "x"])
def test_anything_else_is_refused(name: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        find_decoder(name)
    assert refused.value.meaning.status == 415


def test_an_old_name_is_known() -> None:
    assert unpack("x-gzip", packed("gzip", b"hi")) == b"hi"
