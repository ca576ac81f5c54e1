"""Grammar checks: the grammars that agents send, in linear time, and hostile ones without harm."""

from __future__ import annotations

import time
from typing import Any

import pytest

from isthmus.bridge.tools.grammar import MAX_EARLEY, examine_input
from patch_grammars import GOOD_PATCH, PATCH, lark, regex


def check_grammar(format: Any, text: str) -> str | None:
    """`None` when the text is fine or cannot be checked; else what is wrong with it."""
    verdict = examine_input(format, text)
    return verdict.detail if verdict.state == "differs" else None


SCRIPT = r"""
start: with_pragma | plain
with_pragma: PRAGMA BREAK SOURCE
plain: SOURCE
PRAGMA: /[ \t]*\/\/ @run:[^\r\n]*/
BREAK: /\r?\n/
SOURCE: /[\s\S]+/
"""
JSON_LIKE = r"""
start: value
value: "[" [value ("," value)*] "]" | ESCAPED_STRING | SIGNED_NUMBER
%import common (ESCAPED_STRING, SIGNED_NUMBER, WS)
%ignore WS
"""


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        pytest.param(None, "anything", id="no-format"),
        pytest.param({"type": "text"}, "anything", id="text-format"),
        pytest.param(lark(PATCH), GOOD_PATCH, id="patch"),
        pytest.param(lark(PATCH), GOOD_PATCH + "\n", id="patch-with-last-newline"),
        pytest.param(lark(SCRIPT), "// @run: {}\nlet a = 1\n", id="script-with-pragma"),
        pytest.param(lark(SCRIPT), "\n\n", id="any-script"),
        pytest.param(lark('start: "a"i "b"~2..3 [X]\nX: "0".."9"'), "Abbb7", id="flags-ranges-repeats"),
        pytest.param(lark('start: "a" "b"\n%ignore " "'), " a  b ", id="ignored-spaces"),
        pytest.param(lark('start: A\nA: B "x"\nB: "1" | "2"'), "2x", id="terminals-of-terminals"),
        pytest.param(lark(JSON_LIKE), '[1, ["a\\"b", -2.5e3], []]', id="recursive"),
        pytest.param(lark(JSON_LIKE), "[" + "1," * 2000 + "1]", id="recursive-and-long"),
        pytest.param(lark('start: s\ns: s s | "a"'), "aaa", id="ambiguous"),
        pytest.param(regex(r"\d{3}-\w+"), "123-é", id="regex"),
        pytest.param(regex("a|b"), "b", id="regex-alternatives-are-anchored-together"),
    ],
)
def test_matching_texts(grammar: Any, text: str) -> None:
    assert check_grammar(grammar, text) is None
    assert examine_input(grammar, text).state in ("free", "matches")


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        pytest.param(lark(PATCH), "", id="empty"),
        pytest.param(lark(PATCH), GOOD_PATCH.removeprefix("*** Begin Patch\n"), id="no-beginning"),
        pytest.param(lark(PATCH), GOOD_PATCH.removesuffix("*** End Patch"), id="no-end"),
        pytest.param(lark(PATCH), GOOD_PATCH.replace(" x", "x"), id="line-without-mark"),
        pytest.param(lark(PATCH), GOOD_PATCH.replace("\n", "\r\n"), id="carriage-returns-the-grammar-does-not-have"),
        pytest.param(lark(SCRIPT), "", id="empty-script"),
        pytest.param(lark('start: "a" "b"'), "a b", id="spaces-not-ignored"),
        pytest.param(lark(JSON_LIKE), "[1, [2]", id="recursive"),
        pytest.param(regex("[0-9]+"), "12\n", id="regex-matches-the-whole-text"),
        pytest.param(regex("b"), "abc", id="regex-is-anchored"),
    ],
)
def test_differing_texts(grammar: Any, text: str) -> None:
    assert check_grammar(grammar, text)
    assert examine_input(grammar, text).state == "differs"


def test_a_recursive_grammar_says_where_it_went_wrong() -> None:
    assert "line 1, column 5" in (check_grammar(lark(JSON_LIKE), "[1, x]") or "")


TWICE = "".join(f"A{n}: A{n - 1} A{n - 1}\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        pytest.param({"type": "grammar", "syntax": "gbnf", "definition": "x"}, "x", id="unknown-syntax"),
        pytest.param({"type": "grammar", "syntax": "lark"}, "x", id="no-definition"),
        pytest.param(lark("this is no grammar ("), "x", id="unreadable"),
        pytest.param(lark('begin: "a"'), "a", id="no-start"),
        pytest.param(lark("start: x\n%import .secrets.x"), "x", id="import-from-disk"),
        pytest.param(lark("start: x\n%import python.x"), "x", id="import-from-elsewhere"),
        pytest.param(lark('start: "a"\n' + "// x\n" * 4000), "a", id="too-long"),
        pytest.param(lark("start: " + "(" * 7000 + '"a"' + ")" * 7000), "a", id="nested-too-deeply"),
        pytest.param(lark(f'start: A39\nA0: "x"\n{TWICE}'), "x", id="terminals-that-double"),
        pytest.param(
            lark("start: " + " ".join('"a"?' for _ in range(30)) + " start?"), "a", id="options-that-multiply"
        ),
        pytest.param(lark('start: "(" start ")" | X\nX: /(a+)+b/'), "a" * 60, id="recursive-with-evil-terminal"),
        pytest.param(lark('start: "(" start ")" | X\nX: /a?a?a?a?a?a?aaaaaa/'), "a" * 40, id="many-options"),
        pytest.param(lark(JSON_LIKE), "[" + "1," * MAX_EARLEY, id="recursive-and-long-and-doubtful"),
        pytest.param(regex("(?=a)b"), "b", id="lookahead"),
        pytest.param(regex(r"(a)\1"), "aa", id="backreference"),
        pytest.param(regex("[[:alpha:]]"), "a", id="posix-class"),
        pytest.param(regex("("), "a", id="broken-regex"),
        pytest.param(regex("a"), "\ud800", id="text-that-is-no-unicode"),
    ],
)
def test_what_cannot_be_checked_is_let_through_and_said(grammar: Any, text: str) -> None:
    verdict = examine_input(grammar, text)
    assert verdict.state == "unchecked"
    assert verdict.detail
    assert check_grammar(grammar, text) is None


def test_a_hostile_regex_takes_linear_time() -> None:
    started = time.thread_time()
    assert check_grammar(regex("(a+)+b"), "a" * 20_000)
    assert check_grammar(lark('start: X "!"\nX: /(a|a|aa)+b/'), "a" * 20_000)
    assert time.thread_time() - started < 10  # some 0.05 s; backtracking would never end


@pytest.mark.measured
def test_a_large_patch_is_checked_in_milliseconds() -> None:
    body = "".join(f" kept line {n}\n-old {n}\n+new {n}\n" for n in range(700))
    text = f"*** Begin Patch\n*** Update File: big.py\n@@\n{body}*** End Patch\n"
    assert len(text) > 20_000
    check_grammar(lark(PATCH), text)
    took = []
    for _ in range(5):
        started = time.thread_time()
        assert check_grammar(lark(PATCH), text) is None
        took.append(time.thread_time() - started)
    assert min(took) < 0.02  # some 0.05 ms
