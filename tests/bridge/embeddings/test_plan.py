"""What becomes of each field of a request for embeddings, by what the model can do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from isthmus.bridge.capabilities import EmbeddingSupport, ProviderCapabilities
from isthmus.bridge.embeddings.plan import EmbeddingPlan, plan_embeddings
from isthmus.bridge.embeddings.read import read_embedding_request
from isthmus.bridge.types.plan import Target
from isthmus.errors import RequestRefused

LITTLE = EmbeddingSupport(supported=True)
MUCH = EmbeddingSupport(
    supported=True, dimensions="output_dimension", base64=True, tokens=True, user=True, fields=frozenset({"input_type"})
)


def plan(facts: EmbeddingSupport, *, strict: bool = False, **body: Any) -> EmbeddingPlan:
    request = read_embedding_request(json.dumps({"input": "hi", **body}).encode())
    target = Target("p", "m", ProviderCapabilities(provider="p", model="m", embeddings=facts))
    return plan_embeddings(request, target, strict=strict)


def test_the_least_that_can_be_sent_is_a_model_and_its_texts() -> None:
    assert plan(LITTLE, model="alias").body == {"model": "m", "input": "hi"}
    assert plan(LITTLE, encoding_format="float", user=None).body == {"model": "m", "input": "hi"}


def test_what_the_model_knows_is_sent_under_its_own_name() -> None:
    made = plan(MUCH, dimensions=8, user="ann", input_type="query", encoding_format="base64")
    assert made.body == {
        "model": "m",
        "input": "hi",
        "output_dimension": 8,
        "user": "ann",
        "input_type": "query",
        "encoding_format": "base64",
    }
    assert (made.dimensions, made.encoding, made.diagnostics) == (8, "base64", ())


def test_packing_is_our_own_affair() -> None:
    made = plan(LITTLE, strict=True, encoding_format="base64")
    assert "encoding_format" not in made.body
    assert (made.encoding, made.diagnostics) == ("base64", ())


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("user", "no counterpart"),
        ("input_type", "not a parameter of embeddings"),
        ("dimension", "did you mean `dimensions`"),
    ],
)
def test_what_it_does_not_know_is_left_out_and_told(field: str, words: str) -> None:
    made = plan(LITTLE, **{field: "x"})
    assert field not in made.body
    (said,) = made.diagnostics
    assert (said.path, said.action, said.code) == (field, "ignored", "bridge.param.ignored")
    assert words in said.message
    with pytest.raises(RequestRefused, match="strict mode"):
        plan(LITTLE, strict=True, **{field: "x"})


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"dimensions": 8}, "dimensions", "have one length"),
        ({"input": [1, 2]}, "input", "check_embedding_ctx_length=False"),
        ({"input": [[1], [2]]}, "input", "takes texts only"),
    ],
)
def test_what_would_make_another_kind_of_vector_is_refused(body: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(RequestRefused, match=words) as refused:
        plan(LITTLE, **body)
    assert refused.value.param == param
    assert plan(MUCH, **body).count == (2 if body.get("input") == [[1], [2]] else 1)
