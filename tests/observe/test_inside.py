"""Where contents were kept, the doctor shows the words that changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from isthmus.observe.cache_doctor import find_break
from isthmus.observe.inside import Inside, look_inside
from isthmus.observe.prefix import read_prompt
from pieces import pieces_of


def inside(before: dict[str, Any], after: dict[str, Any]) -> Inside | None:
    broken = find_break(read_prompt(pieces_of(before)), read_prompt(pieces_of(after)))
    assert broken is not None
    return look_inside(broken, before, after)


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (lambda text: {"messages": [{"role": "system", "content": text}]}, "messages[0].content"),
        (lambda text: {"instructions": text}, "instructions"),
        (lambda text: {"system": [{"text": "a"}, {"text": text}]}, "system[1].text"),
        (
            lambda text: {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]},
            "messages[0].content[0].text",
        ),
    ],
    ids=["chat", "responses", "messages", "parts"],
)
def test_the_words_that_changed_are_shown(body: Callable[[str], dict[str, Any]], path: str) -> None:
    assert inside(body("It is 9."), body("It is 8.")) == Inside(path, "It is 9.", "It is 8.")


def test_what_is_no_text_is_shown_as_it_travels() -> None:
    before, after = ({"tools": [{"name": "f", "parameters": {"type": kind}}]} for kind in ("object", None))
    assert inside(before, after) == Inside("tools[0].parameters.type", "object", "null")


def test_what_came_or_went_has_no_inside() -> None:
    one, two = {"name": "a"}, {"name": "b"}
    assert inside({"tools": [two]}, {"tools": [one, two]}) is None
    assert inside({"tools": [one, two]}, {"tools": [two]}) is None
    assert inside({"tools": [one, two]}, {"tools": [two, one]}) is None


def test_a_body_that_was_not_kept_has_no_inside() -> None:
    before, after = {"instructions": "a"}, {"instructions": "b"}
    broken = find_break(read_prompt(pieces_of(before)), read_prompt(pieces_of(after)))
    assert broken is not None
    assert look_inside(broken, None, after) is None
    assert look_inside(broken, before, {}) is None
