"""The list of models in Anthropic's pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isthmus.bridge.capabilities import Cost
from isthmus.errors import RequestRefused
from isthmus.providers.catalog import KnownModel
from isthmus.server.anthropic_models import anthropic_model, anthropic_page


def known(name: str) -> KnownModel:
    return KnownModel(
        provider="p",
        model=name,
        title=name.title(),
        context=1000,
        output=100,
        input=("image",),
        efforts=(),
        thinks=False,
        cost=Cost(),
        formats=(),
    )


LISTED = {name: known(name) for name in ("claude-a", "deepseek/b", "anthropic/c", "gpt")}
ALL = ["claude-a", "deepseek/b", "anthropic/c", "gpt", "claude-deepseek/b", "claude-gpt"]


def ids(**asked: Any) -> tuple[list[str], bool]:
    page = anthropic_page(LISTED, {name: str(value) for name, value in asked.items()})
    listed = [model["id"] for model in page["data"]]
    assert (page["first_id"], page["last_id"]) == ((listed[0], listed[-1]) if listed else (None, None))
    return listed, page["has_more"]


def test_what_claude_code_would_not_show_is_there_once_more_under_a_name_that_it_does() -> None:
    assert ids() == (ALL, False)
    titles = {model["id"]: model["display_name"] for model in anthropic_page(LISTED, {})["data"]}
    assert titles["claude-gpt"] == "gpt", "a person sees what it really is"


def test_pages_go_on_in_both_directions() -> None:
    assert ids(limit=2) == (ALL[:2], True)
    assert ids(limit=2, after_id=ALL[1]) == (ALL[2:4], True)
    assert ids(limit=2, after_id=ALL[3]) == (ALL[4:], False)
    assert ids(limit=2, before_id=ALL[4]) == (ALL[2:4], True)
    assert ids(limit=9, before_id=ALL[2]) == (ALL[:2], False)
    assert ids(after_id=ALL[-1]) == ([], False)


BAD = [("after_id", "none"), ("before_id", "none"), ("limit", 0), ("limit", 1001)]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_page_that_cannot_be_is_refused(name: str, value: Any) -> None:
    with pytest.raises(RequestRefused) as refused:
        ids(**{name: value})
    assert refused.value.param == name


def test_a_model_tells_its_window_and_who_it_is() -> None:
    assert anthropic_model("x", known("m")) == {
        "type": "model",
        "id": "x",
        "display_name": "M",
        "description": "a window of 1,000 tokens",
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": 1000,
        "max_tokens": 100,
        "isthmus": {"provider": "p", "model": "m", "input": ["text", "image"]},
    }


def test_of_a_window_that_nobody_has_stated_nothing_is_said() -> None:
    assert anthropic_model("x", replace(known("m"), context=None))["description"] is None
