"""A request for embeddings: what is let in, and the field that is named for what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.bridge.limits import DEFAULT_LIMITS, RequestLimits
from isthmus.errors import RequestRefused

TIGHT = RequestLimits(max_inputs=3, max_input_tokens=5, max_fields=4)


def read(limits: RequestLimits = DEFAULT_LIMITS, **body: Any) -> Any:
    return read_embedding_request(json.dumps(body).encode(), limits)


@pytest.mark.parametrize(
    ("given", "count", "tokens"),
    [
        ("one text", 1, False),
        (["one", "two"], 2, False),
        ([1, 2, 3], 1, True),
        ([[1], [2, 3]], 2, True),
    ],
)
def test_every_form_of_input_is_counted_as_texts(given: Any, count: int, tokens: bool) -> None:
    request = read(input=given, model="m")
    assert (request.count, request.tokens, request.body["input"]) == (count, tokens, given)


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({}, "input", "is missing"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "input", "/v1/chat/completions"),
        ({"input": None}, "input", "is missing"),
        ({"input": 3}, "input", "must be a text"),
        ({"input": {"text": "x"}}, "input", "must be a text"),
        ({"input": []}, "input", "is empty"),
        ({"input": ""}, "input[0]", "is empty"),
        ({"input": ["a", ""]}, "input[1]", "is empty"),
        ({"input": ["a", [1]]}, "input[1]", "neither a text nor tokens"),
        ({"input": ["a", None]}, "input[1]", "neither a text nor tokens"),
        ({"input": [[1], []]}, "input[1]", "is empty"),
        ({"input": [1, "a"]}, "input[0]", "no token"),
        ({"input": [1, -1]}, "input[0]", "no token"),
        ({"input": [[1, True]]}, "input[0]", "no token"),
        ({"input": [1.5]}, "input[0]", "neither a text nor tokens"),
        ({"input": "x", "encoding_format": "hex"}, "encoding_format", "`float` or `base64`"),
        ({"input": "x", "dimensions": 0}, "dimensions", "at least 1"),
        ({"input": "x", "dimensions": True}, "dimensions", "at least 1"),
        ({"input": "x", "model": 3}, "model", "must be a string"),
        ({"input": "x", "user": {}}, "user", "must be a string"),
    ],
)
def test_what_is_wrong_is_named(body: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(RequestRefused, match=words) as refused:
        read(**body)
    assert refused.value.param == param


def test_what_is_missing_may_also_be_null() -> None:
    assert read(input="x", model=None, dimensions=None, encoding_format=None, user=None).count == 1


@pytest.mark.parametrize(
    ("just", "more", "setting"),
    [
        ({"input": ["a"] * 3}, {"input": ["a"] * 4}, "limits.max_inputs"),
        ({"input": [1] * 5}, {"input": [1] * 6}, "limits.max_input_tokens"),
        ({"input": [[1, 2], [3, 4, 5]]}, {"input": [[1, 2, 3], [4, 5, 6]]}, "limits.max_input_tokens"),
        ({"input": "a", "b": 1, "c": 1, "d": 1}, {"input": "a", "b": 1, "c": 1, "d": 1, "e": 1}, "limits.max_fields"),
    ],
)
def test_what_is_just_allowed_is_let_in_and_one_more_is_not(
    just: dict[str, Any], more: dict[str, Any], setting: str
) -> None:
    read(TIGHT, **just)
    with pytest.raises(RequestRefused, match=setting) as refused:
        read(TIGHT, **more)
    assert refused.value.code == "request_too_large"


def test_tokens_have_bounds_of_their_own_beside_those_of_values() -> None:
    """A thousand texts of 250 tokens are more values than any other request may hold."""
    assert read(input=[[7] * 250] * 1_000).count == 1_000
    with pytest.raises(RequestRefused, match=r"limits\.max_input_tokens"):
        read(input=[[7] * 301] * 1_000)


@pytest.mark.parametrize("raw", [b"[]", b'"x"', b"{", b"\xff"])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(RequestRefused):
        read_embedding_request(raw)
