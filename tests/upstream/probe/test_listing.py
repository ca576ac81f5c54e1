"""What servers tell of their models, in many spellings."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.upstream.probe.answers import Answer
from isthmus.upstream.probe.listing import Props, read_context, read_inputs, read_models, read_props

Json = dict[str, Any]


@pytest.mark.parametrize("junk", [None, 7, "x", [], [1], {}, {"data": 1}, {"data": [1]}, {"data": [{"id": 1}]}])
def test_junk_is_read_as_nothing(junk: Any) -> None:
    answer = Answer(200, junk, (junk,))
    assert read_models(answer) == ()
    assert read_context(answer, "m") is None
    assert read_inputs(answer, "m") == ()
    assert read_props(answer) == Props()


@pytest.mark.parametrize("body", [{"data": [{"id": "b"}, {"id": "a"}]}, {"models": [{"id": "b"}, {"id": "a"}]}])
def test_models_keep_the_servers_order(body: Json) -> None:
    assert read_models(Answer(200, body)) == ("b", "a")
    assert read_models(Answer(404, body)) == ()


@pytest.mark.parametrize(
    ("entry", "size"),
    [
        ({"max_model_len": 1000}, 1000),
        ({"context_length": 2000}, 2000),
        ({"context_window": 3000}, 3000),
        ({"max_context_length": 4000}, 4000),
        ({"meta": {"n_ctx_train": 5000}}, 5000),
        ({"max_model_len": True}, None),
        ({}, None),
    ],
)
def test_the_context_size_has_many_names(entry: Json, size: int | None) -> None:
    assert read_context(Answer(200, {"data": [{"id": "m", **entry}]}), "m") == size


def test_inputs_are_read_from_a_listing() -> None:
    entry = {"id": "m", "architecture": {"input_modalities": ["text", "image", "file"]}}
    assert read_inputs(Answer(200, {"data": [entry]}), "m") == ("image", "file")


def test_props_tell_window_and_senses() -> None:
    body = {"default_generation_settings": {"n_ctx": 32768}, "modalities": {"vision": True, "audio": False}}
    assert read_props(Answer(200, body)) == Props(32768, ("image",))
    assert read_props(Answer(200, {"n_ctx": 4096, "modalities": {"audio": True}})) == Props(4096, ("audio",))
    assert read_props(Answer(404, body)) == Props()
