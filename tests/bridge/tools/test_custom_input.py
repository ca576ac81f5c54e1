"""Custom input: every shape that models send, whole and in pieces."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.tools.custom_input import CustomInput, CustomInputReader, read_custom_input

TWICE = json.dumps(json.dumps({"input": "ls"}))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param('{"input": "ls"}', CustomInput("ls"), id="as-asked"),
        pytest.param(' {\n "input" :\t"ls" , "why": 1}', CustomInput("ls", ignored=("why",)), id="spaces-and-keys"),
        pytest.param('{"why": "x", "input": "ls"}', CustomInput("ls", "key", ("why",)), id="input-comes-later"),
        pytest.param('{"input": ""}', CustomInput(""), id="empty-input"),
        pytest.param('{"patch": "p"}', CustomInput("p", "key"), id="patch"),
        pytest.param('{"content": "p"}', CustomInput("p", "key"), id="content"),
        pytest.param('{"anything": "p"}', CustomInput("p", "key"), id="any-single-string"),
        pytest.param(
            '{"code": "p", "timeout": 5}', CustomInput("p", "key", ("timeout",)), id="a-known-key-among-others"
        ),
        pytest.param("ls -l", CustomInput("ls -l", "text"), id="raw-text"),
        pytest.param("{ const x = 1 }", CustomInput("{ const x = 1 }", "text"), id="raw-text-with-brace"),
        pytest.param(TWICE, CustomInput("ls", "nested"), id="encoded-twice"),
        pytest.param('"ls"', CustomInput("ls", "nested"), id="json-string"),
        pytest.param("```sh\nls\n```", CustomInput("ls", "fenced"), id="fenced-text"),
        pytest.param('{"input": "```\\nls\\npwd\\n```\\n"}', CustomInput("ls\npwd", "fenced"), id="fenced-input"),
        pytest.param(
            '{"input": "```a\\n1\\n```\\n```b\\n2\\n```"}',
            CustomInput("```a\n1\n```\n```b\n2\n```"),
            id="two-fences-are-content",
        ),
        pytest.param('{"input": "a\nb"}', CustomInput("a\nb", "loose"), id="raw-newline-in-the-string"),
        pytest.param(r'{"input": "a\qb"}', CustomInput(r"a\qb", "loose"), id="unknown-escape"),
        pytest.param('{"input": "f("x", 1)"}', CustomInput('f("x", 1)', "loose"), id="unescaped-quotes"),
        pytest.param('{"input": "f(",")"}', CustomInput('f(",")', "loose"), id="unescaped-quote-before-a-comma"),
        pytest.param('{"input": "ab", "x": ', CustomInput("ab", "loose"), id="broken-behind-the-input"),
        pytest.param('{"input": "ab"}}', CustomInput("ab", "loose"), id="one-brace-too-many"),
        pytest.param('{"input": "ab', CustomInput("ab", "cut"), id="cut-in-the-string"),
        pytest.param('{"input": "ab\\', CustomInput("ab\\", "cut"), id="cut-in-an-escape"),
        pytest.param('{"input": "a\\ud83d', CustomInput("a\ufffd", "cut"), id="cut-in-a-pair"),
        pytest.param(
            '{"input": "\\ud83d\\ude00 \\u00e9 \\ud83dx"}', CustomInput("😀 é \ufffdx", "loose"), id="unicode"
        ),
        pytest.param("{}", None, id="empty-object"),
        pytest.param('{"input": 5}', None, id="input-is-no-string"),
        pytest.param('{"a": "x", "b": "y"}', None, id="several-unknown-strings"),
        pytest.param('{"code": "x", "text": "y"}', None, id="several-known-strings"),
        pytest.param('{"a": 1', None, id="broken-object"),
        pytest.param("[1, 2]", None, id="array"),
        pytest.param("42", None, id="number"),
        pytest.param("null", None, id="null"),
        pytest.param("", None, id="nothing"),
        pytest.param(" \n", None, id="blank"),
    ],
)
def test_reading_a_whole_call(arguments: str, expected: CustomInput | None) -> None:
    assert read_custom_input(arguments) == expected


class CustomInputStream:
    """The reader, and what it has given out."""

    def __init__(self, tool: dict[str, str] | None = None) -> None:
        self._reader = CustomInputReader(tool or {})
        self.text = ""

    @property
    def live(self) -> bool:
        return bool(self.text)

    def feed(self, fragment: str) -> str:
        new = self._reader.feed(fragment)
        self.text += new
        return new


def feed(arguments: str, stream: CustomInputStream, size: int = 1) -> list[str]:
    return [stream.feed(arguments[start : start + size]) for start in range(0, len(arguments), size)]


def test_the_text_comes_out_while_it_arrives() -> None:
    stream = CustomInputStream()
    pieces = feed('{"input": "ab\\ncd"}', stream)
    assert [piece for piece in pieces if piece] == ["a", "b", "\n", "c", "d"]
    assert stream.live
    assert stream.text == "ab\ncd"


@pytest.mark.parametrize(
    "arguments",
    ['{"patch": "x"}', '{"why": "x", "input": "y"}', "raw text", '"{}"', '{"input": 5}', '{"inputs": "x"}', "[]"],
)
def test_other_shapes_never_go_live(arguments: str) -> None:
    stream = CustomInputStream()
    assert "".join(feed(arguments, stream)) == ""
    assert not stream.live


@pytest.mark.parametrize("text", ["```sh\nls\n```", "\n ```\nx\n```", "``", "", "   "])
def test_what_may_be_a_fence_never_goes_live(text: str) -> None:
    stream = CustomInputStream()
    feed(json.dumps({"input": text}), stream)
    assert not stream.live
    assert stream.text == ""


def test_a_single_backtick_is_no_fence() -> None:
    stream = CustomInputStream()
    feed(json.dumps({"input": "`ls`"}), stream)
    assert stream.text == "`ls`"


PATCH_TOOL = {"type": "custom", "name": "apply_patch"}


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("*** Begin Patch\n*** End Patch", True),
        ("*** Update File: a\n", False),
        ("\n*** Begin Patch\n", False),
        ("apply_patch <<'EOF'\n*** Begin Patch", False),
        ("*** Begin", False),
    ],
)
def test_a_patch_goes_live_only_behind_its_first_line(text: str, live: bool) -> None:
    stream = CustomInputStream(PATCH_TOOL)
    feed(json.dumps({"input": text}), stream)
    assert stream.live is live
    assert stream.text == (text if live else "")


def cut(text: str, places: list[int]) -> list[str]:
    marks = [0, *sorted({place % (len(text) + 1) for place in places}), len(text)]
    return [text[a:b] for a, b in pairwise(marks)]


cuts = st.lists(st.integers(min_value=0, max_value=10_000), max_size=12)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
wild = st.text(st.sampled_from(list('{}":,\\ inputud83d\\ude00`\n*x')), max_size=40)


@settings(max_examples=200, deadline=None)
@given(texts, st.booleans(), st.sampled_from(["", " ", "\n\t"]), cuts)
def test_any_cut_of_a_good_call_streams_exactly_its_input(
    text: str, ascii_only: bool, space: str, at: list[int]
) -> None:
    arguments = f'{{{space}"input"{space}:{space}{json.dumps(text, ensure_ascii=ascii_only)}{space}}}'
    stream = CustomInputStream()
    given_out = "".join(stream.feed(piece) for piece in cut(arguments, at))
    assert given_out == stream.text
    assert given_out == (text if stream.live else "")
    if text.strip() and not text.lstrip().startswith("`"):
        assert stream.live


@settings(max_examples=400, deadline=None)
@given(st.one_of(wild, wild.map(lambda tail: '{"input": "' + tail)), cuts)
def test_whatever_was_streamed_is_the_beginning_of_what_is_read(arguments: str, at: list[int]) -> None:
    stream = CustomInputStream()
    so_far = ""
    for piece in cut(arguments, at):
        so_far += stream.feed(piece)
    assert so_far == stream.text
    if stream.live:
        found = read_custom_input(arguments)
        assert found is not None
        assert found.text.startswith(so_far)
    else:
        assert so_far == ""


@settings(max_examples=200, deadline=None)
@given(wild.map(lambda tail: '{"input": "' + tail), cuts)
def test_cutting_never_changes_what_is_streamed(arguments: str, at: list[int]) -> None:
    whole, pieces = CustomInputStream(), CustomInputStream()
    whole.feed(arguments)
    for piece in cut(arguments, at):
        pieces.feed(piece)
    assert pieces.text == whole.text
