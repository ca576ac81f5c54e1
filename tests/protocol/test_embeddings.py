"""The shape of a request for embeddings is that of the door."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.protocol.embeddings import CreateEmbedding

GOOD: tuple[Any, ...] = (
    {"input": "x"},
    {"input": ["x", "y"], "model": "m", "dimensions": 3},
    {"input": [1, 2], "encoding_format": "base64"},
    {"input": [[1], [2]], "user": "ann"},
)


@pytest.mark.parametrize("body", GOOD)
def test_what_the_door_takes_fits_the_shape(body: dict[str, Any]) -> None:
    assert read_embedding_request(json.dumps(body).encode()).body == body
    assert msgspec.convert(body, CreateEmbedding) == body


@pytest.mark.parametrize("body", [{}, {"input": 3}, {"input": "x", "encoding_format": "hex"}])
def test_what_the_door_refuses_does_not(body: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, CreateEmbedding)
