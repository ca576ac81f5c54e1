"""The demo model's vectors: always the same, of length one, and near where words are shared."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.demo.question import Refused
from isthmus.demo.vectors import LENGTH, MODEL, embed, make_vector


def near(one: str, other: str) -> float:
    return sum(a * b for a, b in zip(make_vector(one), make_vector(other), strict=True))


@given(st.text(), st.integers(1, 300))
def test_a_vector_has_the_length_that_was_asked_for_and_the_size_one(text: str, length: int) -> None:
    vector = make_vector(text, length)
    assert len(vector) == length
    assert math.isclose(sum(number * number for number in vector), 1.0, abs_tol=1e-4) or not any(vector)
    assert make_vector(text, length) == vector


def test_texts_that_share_words_lie_nearer_than_others() -> None:
    question = "where does the boat leave"
    assert near(question, "The boat leaves at nine.") > near(question, "Bread is baked in the morning.") + 0.1
    assert near("boats", "boat") > near("boats", "bread") + 0.1
    assert math.isclose(near("same", "same"), 1.0, abs_tol=1e-4)


def test_the_answer_has_openais_shape() -> None:
    body = embed({"model": MODEL, "input": ["one two", "three"]})
    assert body["object"] == "list"
    assert [len(each["embedding"]) for each in body["data"]] == [LENGTH, LENGTH]
    assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] == 3


def test_base64_holds_the_same_numbers() -> None:
    (plain,) = embed({"model": MODEL, "input": "hello", "dimensions": 8})["data"]
    (packed,) = embed({"model": MODEL, "input": "hello", "dimensions": 8, "encoding_format": "base64"})["data"]
    numbers = struct.unpack("<8f", base64.b64decode(packed["embedding"]))
    assert numbers == pytest.approx(plain["embedding"], rel=1e-6)


def test_tokens_are_taken_too() -> None:
    assert len(embed({"model": MODEL, "input": [1, 2, 3]})["data"]) == 1
    assert len(embed({"model": MODEL, "input": [[1, 2], [3]]})["data"]) == 2


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "gpt", "input": "x"}, 404),
        ({"model": MODEL}, 400),
        ({"model": MODEL, "input": []}, 400),
        ({"model": MODEL, "input": "x", "dimensions": 0}, 400),
        ({"model": MODEL, "input": "x", "dimensions": 5000}, 400),
    ],
)
def test_what_cannot_be_done_is_refused(body: dict[str, Any], status: int) -> None:
    with pytest.raises(Refused) as refused:
        embed(body)
    assert refused.value.status == status
