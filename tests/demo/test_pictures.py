"""The demo's pictures: real ones, always the same for the same words, and others for others."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.demo.pictures import MODEL, SIZES, draw, draw_events, make_picture
from isthmus.demo.question import Refused


def pixels(picture: bytes) -> tuple[int, int, bytes]:
    """A PNG taken apart by its own rules: every chunk's sum is checked."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        kind, data = picture[at + 4 : at + 8], picture[at + 8 : at + 8 + length]
        (checksum,) = struct.unpack(">I", picture[at + 8 + length : at + 12 + length])
        assert checksum == zlib.crc32(kind + data)
        chunks[kind] = data
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    wide, high, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours) == (8, 2)
    return wide, high, zlib.decompress(chunks[b"IDAT"])


@pytest.mark.parametrize("size", SIZES)
def test_a_picture_is_a_png_of_its_size(size: str) -> None:
    wide, high, data = pixels(make_picture("a fox", size))
    assert f"{wide}x{high}" == size
    assert len(data) == high * (1 + 3 * wide)


@given(st.text(min_size=1), st.text(min_size=1))
def test_the_same_words_are_the_same_picture(one: str, other: str) -> None:
    first = make_picture(one, "256x256")
    assert make_picture(one, "256x256") == first
    assert (make_picture(other, "256x256") == first) == (one == other)


def test_what_is_changed_depends_on_what_was_there() -> None:
    fox, owl = make_picture("fox"), make_picture("owl")
    assert make_picture("bluer", given=[fox]) != make_picture("bluer", given=[owl])


def test_an_answer_has_as_many_as_were_asked_for_and_no_two_alike() -> None:
    answer = draw({"model": MODEL, "prompt": "a fox", "n": 3, "size": "256x256"})
    made = [each["b64_json"] for each in answer["data"]]
    assert len(set(made)) == 3
    assert b64decode(made[0]) == make_picture("a fox", "256x256")
    assert answer["usage"]["total_tokens"] == answer["usage"]["input_tokens"] + 3 * 64


def test_a_stream_ends_with_the_same_picture() -> None:
    asked = {"model": MODEL, "prompt": "a fox", "size": "auto", "partial_images": 2}
    *early, last = draw_events(asked)
    assert [each["type"] for each in early] == ["image_generation.partial_image"] * 2
    assert len({each["b64_json"] for each in (*early, last)}) == 3
    assert last["b64_json"] == draw(asked)["data"][0]["b64_json"]
    assert next(iter(draw_events(asked, [b"x"])))["type"] == "image_edit.partial_image"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "other"}, 404),
        ({"prompt": ""}, 400),
        ({"prompt": 1}, 400),
        ({"size": "1x1"}, 400),
        ({"n": 11}, 400),
        ({"n": "many"}, 400),
        ({"prompt": "Unspeakable things"}, 400),
    ],
)
def test_what_it_does_not_draw_is_refused(body: dict[str, Any], status: int) -> None:
    with pytest.raises(Refused) as refused:
        draw({"model": MODEL, "prompt": "a fox", **body})
    assert refused.value.status == status
