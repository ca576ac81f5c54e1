"""A problem is one sentence with its place, its key and its fix; several are one error."""

from __future__ import annotations

import pytest

from isthmus.values.problems import KeyPath, Problem, as_error, dotted


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("server", "port"), "server.port"),
        (("models", "aliases", "gpt-5.5"), 'models.aliases."gpt-5.5"'),
        (("providers", "x", "api_keys[0]"), "providers.x.api_keys[0]"),
        ((), ""),
    ],
)
def test_a_path_is_spelled_as_in_the_file(path: KeyPath, text: str) -> None:
    assert dotted(path) == text


def test_a_problem_says_where_what_and_how_to_mend_it() -> None:
    assert Problem(("a", "b"), "is wrong", "mend it", place="x.toml:3").text == "x.toml:3: `a.b` is wrong. Fix: mend it"
    assert Problem((), "is wrong", "mend it").text == "is wrong. Fix: mend it"


def test_one_problem_is_a_sentence_and_several_are_a_list() -> None:
    one, two = Problem(("a",), "is wrong", "mend it"), Problem(("b",), "is odd", "see to it")
    assert as_error([one]).message == one.text
    error = as_error([one, two])
    assert error.message == f"the configuration has 2 problems:\n- {one.text}\n- {two.text}"
    assert error.metadata["problems"] == (one, two)


def test_a_question_gets_no_full_stop() -> None:
    asked = Problem(("uses",), "names nobody; did you mean `deepseek`?", "set it to one of them")
    assert asked.text == "`uses` names nobody; did you mean `deepseek`? Fix: set it to one of them"
    assert Problem(("uses",), "names nobody", "set it").text == "`uses` names nobody. Fix: set it"
