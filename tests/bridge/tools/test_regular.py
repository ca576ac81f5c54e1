"""Grammars as one regular expression: what it matches, and why there is none."""

from __future__ import annotations

import pytest

from isthmus.bridge.tools.regular import (
    MAX_DEFINITION,
    NotRegular,
    Unreadable,
    compile_regex,
    compile_regular_grammar,
    load_lark_grammar,
)


@pytest.mark.parametrize(
    ("pattern", "fits", "not_these"),
    [
        pytest.param(r"\d+", "12", ["", "1a", "a1"], id="the-whole-text"),
        pytest.param(r"\w", "é", ["-"], id="words-beyond-ascii"),
        pytest.param(r"[\d_]", "٣", ["x"], id="digits-beyond-ascii-in-a-class"),
        pytest.param(r"[]a]+", "]a", ["b"], id="a-bracket-first-in-its-class"),
        pytest.param(r"[^]a]", "b", ["]"], id="or-first-behind-its-negation"),
        pytest.param(r"a\Z", "a", ["ab", "a\n"], id="pythons-end"),
    ],
)
def test_a_pattern_means_what_the_regex_crate_says(pattern: str, fits: str, not_these: list[str]) -> None:
    matches = compile_regex(pattern)
    assert matches(fits)
    assert not any(map(matches, not_these))


@pytest.mark.parametrize("pattern", ["(", "(?=a)", "[[:alpha:]]", "[a&&b]", "a" * 100_001])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_unreadable(pattern: str) -> None:
    with pytest.raises(Unreadable):
        compile_regex(pattern)


@pytest.mark.parametrize(
    ("definition", "fits", "differs"),
    [
        pytest.param('start: "a" ["b"] "c"~2..3', "abccc", "abc", id="options-and-repetition"),
        pytest.param('start: word ("," word)*\nword: /[a-z]+/', "ab,c", "ab,", id="rules"),
        pytest.param('start: "a" "b"\n%ignore " "', " a  b ", "a-b", id="what-is-ignored-may-stand-between"),
        pytest.param('start: AB\nAB: "a" "b"\n%ignore " "', "ab ", "a b", id="but-not-inside-a-terminal"),
        pytest.param('start: "a".."c" "x"i', "bX", "dx", id="ranges-and-flags"),
        pytest.param('start: "a"+ | "b" -> c', "aa", "ab", id="alternatives-with-an-alias"),
        pytest.param('start: "."', ".", "x", id="literals-are-no-patterns"),
    ],
)
def test_a_grammar_without_recursion_becomes_one_pattern(definition: str, fits: str, differs: str) -> None:
    matches = compile_regular_grammar(definition)
    assert matches(fits)
    assert not matches(differs)


@pytest.mark.parametrize("definition", ['start: "(" start ")" | "x"', 'start: twice{"a"}\ntwice{x}: x x'])
def test_recursion_and_templates_are_not_regular(definition: str) -> None:
    with pytest.raises(NotRegular):
        compile_regular_grammar(definition)


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        pytest.param("x" * (MAX_DEFINITION + 1), "too long", id="too-long"),
        pytest.param("start: x\n%import python.x", "imports", id="import"),
        pytest.param("start: (", "cannot be read", id="broken"),
        pytest.param(
            'start: T20\nT0: "x"\n' + "\n".join(f"T{n}: T{n - 1} T{n - 1}" for n in range(1, 21)),
            "multiply",
            id="terminals-that-double",
        ),
    ],
)
def test_what_is_not_read_is_named(definition: str, reason: str) -> None:
    with pytest.raises(Unreadable, match=reason):
        load_lark_grammar(definition)
