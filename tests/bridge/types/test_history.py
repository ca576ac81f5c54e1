"""Parts of one message as one text."""

from __future__ import annotations

import pytest

from isthmus.bridge.types.history import join_texts


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["Output:", "ok"], "Output:\nok"),
        (["Hello ", "world"], "Hello world"),
        (["Hello", " world"], "Hello world"),
        (["a\n", "b"], "a\nb"),
        (["a", "", "b"], "a\nb"),
        ([], ""),
    ],
)
def test_a_line_break_stands_only_where_nothing_else_keeps_two_parts_apart(texts: list[str], joined: str) -> None:
    assert join_texts(texts) == joined
