from __future__ import annotations

from typing import Any

import pytest

from demo_requests import PATCH, SHELL, STRING, WEATHER, tool
from isthmus.demo.arguments import Shape, command_for, fill_arguments, list_field, shape_of
from isthmus.demo.question import Tool
from isthmus.demo.words import read_words

WRITE = tool("save", path=STRING, content=STRING, mode={"type": "string", "enum": ["a", "w"]})
OPERATION = tool("apply_patch", operation={"type": "object"})


def _tool(declared: dict[str, Any]) -> Tool:
    return Tool(**declared["function"])


@pytest.mark.parametrize(
    ("declared", "shape"),
    [(PATCH, "patch"), (OPERATION, "operation"), (SHELL, "shell"), (WRITE, "write"), (WEATHER, "form")],
)
def test_a_tool_is_known_by_its_shape(declared: dict[str, Any], shape: Shape) -> None:
    assert shape_of(_tool(declared)) == shape


def test_a_patch_tool_gets_a_harmless_patch_whatever_the_text() -> None:
    assert "*** Add File: hello.txt" in fill_arguments(_tool(PATCH), "good day")["input"]


def test_a_file_tool_gets_the_file_and_what_else_it_requires() -> None:
    filled = fill_arguments(_tool(WRITE), "create a.txt with hi")
    assert filled == {"path": "a.txt", "content": "hi", "mode": "a"}


def test_a_form_gets_the_words_that_it_is_handed() -> None:
    words = read_words("weather in Rome")
    assert fill_arguments(_tool(WEATHER), "weather in Paris", words) == {"city": "Rome"}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("run `ls`", "ls"),
        ("create a.txt with hi", "printf '%s\\n' hi > a.txt"),
        ("run make a.txt", "make a.txt"),
        ("it's", "echo 'it'\"'\"'s'"),
    ],
)
def test_a_shell_gets_a_command_line_for_any_text(text: str, command: str) -> None:
    assert command_for(text) == command


def test_a_list_is_spread_over_the_one_field_that_takes_a_thing() -> None:
    assert list_field(_tool(WEATHER)) == "city"
    assert list_field(_tool(tool("route", start=STRING, goal_city=STRING, end_city=STRING))) is None
    assert list_field(_tool(SHELL)) is None
