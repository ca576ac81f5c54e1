"""What servers tell of their models, in many spellings."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.providers.word.told import NOTHING, Word
from isthmus.upstream.probe.answers import Answer
from isthmus.upstream.probe.listing import read_models, read_word

Json = dict[str, Any]


@pytest.mark.parametrize("junk", [None, 7, "x", [], [1], {}, {"data": 1}, {"data": [1]}, {"data": [{"id": 1}]}])
def test_junk_is_read_as_nothing(junk: Any) -> None:
    answer = Answer(200, junk, (junk,))
    assert read_models(answer) == ()
    assert read_word("m", answer, answer) == NOTHING


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
        ({"meta": {"n_ctx": 5000, "n_ctx_train": 9000}}, 5000),
        ({"meta": {"n_ctx_train": 9000}}, None),  # what it was trained for is not what is served
        ({"max_model_len": True}, None),
        ({}, None),
    ],
)
def test_the_context_size_has_many_names(entry: Json, size: int | None) -> None:
    assert read_word("m", Answer(200, {"data": [{"id": "m", **entry}]})).context == size


def test_inputs_are_read_from_a_listing() -> None:
    entry = {"id": "m", "architecture": {"input_modalities": ["text", "image", "file"]}}
    senses = read_word("m", Answer(200, {"data": [entry]})).senses
    assert {sense for sense, has in senses.items() if has} == {"image", "file"}


def test_props_tell_window_and_senses() -> None:
    body = {"default_generation_settings": {"n_ctx": 32768}, "modalities": {"vision": True, "audio": False}}
    said = Word(context=32768, senses={"image": True, "audio": False})
    assert read_word("any", Answer(404), Answer(200, body)) == said
    assert read_word("any", Answer(404, body)) == NOTHING


def test_what_props_say_counts_over_the_list() -> None:
    listing = {"data": [{"id": "m", "max_model_len": 9000}], "object": "list"}
    props = {"default_generation_settings": {"n_ctx": 4096}, "modalities": {"vision": False}}
    assert read_word("m", Answer(200, listing), Answer(200, props)).senses == {"image": False}
    assert read_word("m", Answer(200, listing)).context == 9000
