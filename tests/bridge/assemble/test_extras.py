"""Vendor state in fragments becomes what a whole reply would have held."""

from __future__ import annotations

from typing import Any

import pytest

from isthmus.bridge.assemble.extras import join_fragments

Entry = dict[str, Any]


def text(words: str, index: int | None = 0, **rest: Any) -> Entry:
    return {"type": "reasoning.text", "index": index, "text": words, **rest}


CASES: dict[str, tuple[list[list[Any]], list[Any]]] = {
    "one index grows": ([[text("a", id="r1")], [text("b", id="r1")], [text("c")]], [text("abc", id="r1")]),
    "a signature comes last": (
        [[text("a", signature=None)], [text("", signature="s")]],
        [text("a", signature="s")],
    ),
    "another index is another entry": ([[text("a")], [text("b", 1)], [text("c", 1)]], [text("a"), text("bc", 1)]),
    "another id is another entry": ([[text("a", id="x")], [text("b", id="y")]], [text("a", id="x"), text("b", id="y")]),
    "another type is another entry": (
        [[text("a")], [{"type": "reasoning.encrypted", "index": 0, "data": "z"}]],
        [text("a"), {"type": "reasoning.encrypted", "index": 0, "data": "z"}],
    ),
    "entries of one delta stay apart": ([[text("a"), text("b")]], [text("a"), text("b")]),
    "without an index nothing is joined": ([[text("a", None)], [text("b", None)]], [text("a", None), text("b", None)]),
    "odd entries are kept": ([["x"], [text("a")], [None]], ["x", text("a"), None]),
}


@pytest.mark.parametrize(("deltas", "whole"), CASES.values(), ids=list(CASES))
def test_fragments_join(deltas: list[list[Any]], whole: list[Any]) -> None:
    assert join_fragments(deltas) == whole
