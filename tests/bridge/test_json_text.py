"""Whether a text is JSON, asked often."""

from __future__ import annotations

import pytest

from isthmus.bridge.json_text import is_json


@pytest.mark.parametrize("text", ["{}", ' {"a": "}"} ', "[1]", '"a"', "1", "true", "null", '{"a": 1}\n'])
def test_json_is_json(text: str) -> None:
    assert is_json(text)


@pytest.mark.parametrize(
    "text", ["", " ", "{", '{"a": "}', "[1", '"a', "ls -l", "{}}", "{}{}", "[" * 20_000, '{"a":' * 9999]
)
def test_anything_else_is_not_and_never_raises(text: str) -> None:
    assert not is_json(text)
