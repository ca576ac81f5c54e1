"""Vectors as they come, in either packing, and as the client wants them; what is no answer is told so."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.bridge.capabilities import ProviderCapabilities
from isthmus.bridge.diagnostics import CompatibilityPlan
from isthmus.bridge.embeddings.answer import Embedded, NotVectors, read_embeddings, render_embeddings
from isthmus.bridge.embeddings.plan import EmbeddingPlan
from isthmus.bridge.types.plan import Target

NUMBERS = st.floats(width=32, allow_nan=False, allow_infinity=False)


def plan(count: int = 1, encoding: Any = "float", dimensions: int | None = None, alias: str | None = None) -> Any:
    target = Target("p", "m", ProviderCapabilities(provider="p", model="m"), alias)
    compatibility = CompatibilityPlan()
    return EmbeddingPlan(
        target=target, body={}, compatibility=compatibility, count=count, encoding=encoding, dimensions=dimensions
    )


def packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def unpacked(text: str) -> list[float]:
    data = base64.b64decode(text)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


def answer(*vectors: Any, usage: Any = None, **more: Any) -> bytes:
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": data, "usage": usage, **more}).encode()


def told(embedded: Embedded) -> list[Any]:
    return [json.loads(bytes(vector)) for vector in embedded.vectors]


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.booleans(), st.booleans())
def test_any_packing_becomes_any_other_and_no_number_changes(vector: list[float], comes: bool, wanted: bool) -> None:
    raw = answer(packed(vector) if comes else vector)
    (found,) = told(read_embeddings(raw, plan(encoding="base64" if wanted else "float")))
    assert (unpacked(found) if wanted else found) == vector


def test_numbers_that_only_travel_through_keep_every_digit() -> None:
    raw = b'{"data":[{"embedding":[0.10000000000000000555, -1e-07,3]}]}'
    (vector,) = read_embeddings(raw, plan()).vectors
    assert bytes(vector) == b"[0.10000000000000000555, -1e-07,3]"


@given(st.permutations(range(5)))
def test_vectors_stand_in_the_order_of_their_texts(order: list[int]) -> None:
    data = [{"index": index, "embedding": [index, 0.5]} for index in order]
    found = read_embeddings(json.dumps({"data": data}).encode(), plan(5))
    assert [vector[0] for vector in told(found)] == [0, 1, 2, 3, 4]


def test_a_server_that_names_no_index_sends_them_in_order() -> None:
    raw = json.dumps({"data": [{"embedding": [1]}, {"embedding": [2]}]}).encode()
    assert told(read_embeddings(raw, plan(2))) == [[1], [2]]


@pytest.mark.parametrize(
    ("raw", "asked", "words"),
    [
        (b"no json", plan(), "no list of embeddings"),
        (b'{"object": "list"}', plan(), "no list of embeddings"),
        (b'{"data": [{"index": 0}]}', plan(), "no list of embeddings"),
        (answer([1.0]), plan(2), "1 vectors for 2 texts"),
        (answer([1.0], [2.0]), plan(1), "2 vectors for 1 texts"),
        (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [2]}]}', plan(2), "`index`"),
        (b'{"data": [{"index": 1, "embedding": [1]}, {"index": 2, "embedding": [2]}]}', plan(2), "`index`"),
        (answer([1.0, 2.0], [1.0]), plan(2), "not of one length"),
        (answer([1.0, 2.0]), plan(dimensions=3), "not of 3 numbers"),
        (answer(packed([1.0, 2.0])), plan(dimensions=3, encoding="base64"), "not of 3 numbers"),
        (answer([]), plan(), "neither a list of numbers"),
        (answer([1, None]), plan(), "neither a list of numbers"),
        (answer([[1.0]]), plan(), "neither a list of numbers"),
        (answer(["1"]), plan(), "neither a list of numbers"),
        (answer([True]), plan(encoding="base64"), "neither a list of numbers"),
        (answer({"values": [1]}), plan(), "neither a list of numbers"),
        (answer("AAA"), plan(), "neither a list of numbers"),
        (answer("AAAA"), plan(), "neither a list of numbers"),
        (answer(""), plan(encoding="base64"), "neither a list of numbers"),
        (answer("äöü!"), plan(encoding="base64"), "neither a list of numbers"),
        (answer(base64.b64encode(struct.pack("<f", float("nan"))).decode()), plan(), "neither a list of numbers"),
        (answer([1e300]), plan(encoding="base64"), "neither a list of numbers"),
    ],
)
def test_what_is_no_answer_is_told_in_words_that_follow_a_name(raw: bytes, asked: Any, words: str) -> None:
    with pytest.raises(NotVectors, match=words) as error:
        read_embeddings(raw, asked)
    assert str(error.value).startswith("answered ")


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 3, "total_tokens": 4}, 3),
        ({"total_tokens": 4}, 4),
        ({}, None),
        (None, None),
    ],
)
def test_usage_is_kept_and_what_was_not_told_is_marked(usage: Any, tokens: int | None) -> None:
    found = read_embeddings(answer([1.0], usage=usage), plan())
    assert found.tokens == tokens
    body = render_embeddings(found, plan())
    assert body["usage"] == {"prompt_tokens": tokens or 0, "total_tokens": tokens or 0}
    assert body["isthmus"].get("usage") == (None if tokens is not None else "not told")


def test_the_shape_is_openais_with_what_was_decided_beside_it() -> None:
    found = read_embeddings(answer([1.0], [2.0], usage={"prompt_tokens": 3}), plan(2))
    body = render_embeddings(found, plan(2, alias="cheap"))
    assert (body["object"], body["model"]) == ("list", "m")
    assert [(each["object"], each["index"]) for each in body["data"]] == [("embedding", 0), ("embedding", 1)]
    assert body["isthmus"] == {"provider": "p", "model": "m", "diagnostics": [], "alias": "cheap"}
