"""Pieces of a text: whole exactly when a decoder says so, and found out in linear time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubling import LINEAR, growth
from isthmus.bridge.wholeness import Pieces
from isthmus.protocol.json import is_json

JSON_LIKE = st.text('{}[]",:\\ \n1a', max_size=20)


@given(st.lists(JSON_LIKE, max_size=6))
def test_it_is_whole_exactly_when_a_decoder_takes_all_of_it(pieces: list[str]) -> None:
    coming = Pieces()
    for number, piece in enumerate(pieces):
        coming.append(piece)
        assert coming.whole == is_json("".join(pieces[: number + 1]))
    assert coming.text == "".join(pieces)
    assert coming.size == len(coming.text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_a_value_cut_anywhere_is_whole_at_its_end(value: object) -> None:
    text = msgspec.json.encode(value).decode()
    coming = Pieces()
    for number, letter in enumerate(text):
        coming.append(letter)
        assert coming.whole == is_json(text[: number + 1])


@pytest.mark.parametrize("fragment", ["[[1],[1]]", '{"a":1}', "[", '"a"', "1", "  ", "x" * 30])
def test_asking_at_every_piece_is_linear(fragment: str) -> None:
    def work(count: int) -> None:
        coming = Pieces("[")
        for _ in range(count):
            coming.append(fragment)
            assert not coming.whole

    assert growth(work, 4000) < LINEAR
