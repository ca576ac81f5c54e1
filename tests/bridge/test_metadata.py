"""Metadata is sixteen short texts under short names."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.metadata import check_metadata
from isthmus.errors import RequestRefused


@pytest.mark.parametrize("given", [{}, {"a": ""}, {"a" * 64: "b" * 512}, {str(number): "x" for number in range(16)}])
def test_what_fits_is_taken_as_it_is(given: dict[str, str]) -> None:
    assert check_metadata(given) is given


def test_null_is_none() -> None:
    assert check_metadata(None) == {}


@pytest.mark.parametrize(
    ("given", "param", "words"),
    [
        ("a", "metadata", "an object"),
        ({"a": None}, "metadata.a", "a text"),
        ({"a": "b" * 513}, "metadata.a", "513 characters; 512 at most"),
        ({"a" * 65: "b"}, "metadata", "65 characters; 64 at most"),
        ({str(number): "x" for number in range(17)}, "metadata", "17 pairs; send 16 at most"),
    ],
)
def test_what_does_not_is_refused_with_its_place(given: Any, param: str, words: str) -> None:
    with pytest.raises(RequestRefused, match=words) as refused:
        check_metadata(given)
    assert refused.value.param == param
