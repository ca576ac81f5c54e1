"""Examinations of custom input: the verdict of the grammar, and the repairs that are certain."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.bridge.tools.examine import Examined, ExamineInput, examination_of, examine
from isthmus.bridge.tools.grammar import examine_input
from patch_grammars import GOOD_PATCH, PATCH, lark, regex

EDIT = {"type": "custom", "name": "edit", "format": lark(PATCH)}
BODY = GOOD_PATCH.removeprefix("*** Begin Patch\n").removesuffix("\n*** End Patch")

line = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
hunk = st.one_of(
    st.builds(lambda n, ls: f"*** Add File: f{n}\n" + "".join(f"+{x}\n" for x in ls), line, st.lists(line, min_size=1)),
    st.builds(lambda n: f"*** Delete File: f{n}\n", line),
    st.builds(
        lambda n, marks: f"*** Update File: f{n}\n@@\n" + "".join(f"{m}{x}\n" for m, x in marks),
        line,
        st.lists(st.tuples(st.sampled_from("+- "), line), min_size=1),
    ),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(hunk, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_every_patch_of_the_grammar_matches_and_loses_no_envelope_for_good(
    hunks: list[str], without_begin: bool, without_end: bool
) -> None:
    text = f"*** Begin Patch\n{''.join(hunks)}*** End Patch"
    assert examine(ExamineInput(EDIT, text)) == Examined(text, "", "matches")
    damaged = text.removeprefix("*** Begin Patch\n") if without_begin else text
    damaged = damaged.removesuffix("*** End Patch") if without_end else damaged
    if damaged != text:
        mended = examine(ExamineInput(EDIT, damaged))
        assert (mended.state, bool(mended.note)) == ("matches", True)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        pytest.param(f"{BODY}\n*** End Patch", "added the line `*** Begin Patch`", id="no-beginning"),
        pytest.param(f"*** Begin Patch\n{BODY}\n", "added the line `*** End Patch`", id="no-end"),
        pytest.param(f"*** Begin Patch\n{BODY}", "added the line `*** End Patch`", id="no-end-and-no-newline"),
        pytest.param(BODY, "Begin Patch`, added the line `*** End", id="no-envelope"),
        pytest.param(f"apply_patch <<'EOF'\n{GOOD_PATCH}\nEOF", "shell command", id="heredoc"),
        pytest.param(f"apply_patch << PATCH\n{GOOD_PATCH}\nPATCH\n", "shell command", id="heredoc-other-word"),
        pytest.param(f"```diff\n{GOOD_PATCH}\n```", "code fence", id="fence"),
        pytest.param(f"```sh\napply_patch <<EOF\n{BODY}\nEOF\n```", "code fence, removed the shell", id="all-at-once"),
        pytest.param(f"\n\n{GOOD_PATCH}\n\n", "blank space", id="blank-space"),
    ],
)
def test_certain_repairs(text: str, note: str) -> None:
    assert examine_input(EDIT["format"], text).state == "differs"
    mended = examine(ExamineInput(EDIT, text))
    assert note in mended.note
    assert (mended.state, examine_input(EDIT["format"], mended.text).state) == ("matches", "matches")


@pytest.mark.parametrize(
    "text",
    ["", "please edit a.py", "diff --git a/x b/x\n", "cd /tmp && apply_patch <<'EOF'\nx\nEOF", "*** Begin Patch\noops"],
)
def test_what_is_not_certain_is_left_alone(text: str) -> None:
    left = examine(ExamineInput(EDIT, text))
    assert (left.text, left.note, left.state) == (text, "", "differs")


def test_a_missing_last_newline_is_added_where_the_grammar_needs_it() -> None:
    tool = {"type": "custom", "name": "lines", "format": regex(r"(\w+\n)+")}
    assert examine(ExamineInput(tool, "a\nb")) == Examined("a\nb\n", "added the final newline", "matches")
    assert examine(ExamineInput(tool, "a b")).text == "a b"
    assert examine(ExamineInput({"type": "custom", "name": "free"}, "a")) == Examined("a")


def test_only_a_tool_with_a_grammar_needs_an_examination() -> None:
    assert examination_of({**EDIT, "description": "words"}, "x") == ExamineInput(EDIT, "x")
    assert examination_of({"type": "custom", "name": "free", "format": {"type": "text"}}, "x") is None
    assert examination_of({"type": "custom", "name": "free"}, "x") is None


def test_what_cannot_be_checked_is_passed_on_and_said() -> None:
    tool = {"type": "custom", "name": "odd", "format": {"type": "grammar", "syntax": "abnf", "definition": "x"}}
    assert examine(ExamineInput(tool, "x")) == Examined(
        "x", "", "unchecked", "the grammar syntax `abnf` is not known here"
    )
