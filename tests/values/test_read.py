"""One reader for all that people write: every problem at once, each with its path, and the rest as it was meant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from isthmus.values.problems import Problem, dotted
from isthmus.values.quantities import DURATION, SIZE
from isthmus.values.read import describe_type, fields_of, read_fields, read_struct


class Inner(msgspec.Struct, frozen=True):
    name: str
    """The one thing that must be said."""
    many: int = 1


class Outer(msgspec.Struct, frozen=True):
    port: Annotated[int, Meta(ge=0, le=9)] = 3
    base_url: str = "x"
    wait: Annotated[float, Meta(gt=0, extra={"quantity": DURATION})] = 1.0
    size: Annotated[int, Meta(ge=0, extra={"quantity": SIZE})] = 0
    pause: Annotated[float, Meta(gt=0, extra={"quantity": DURATION})] | None = None
    word: Literal["low", "high"] = "low"
    maybe: Literal["a", "b"] | None = None
    lines: list[str] = []
    kinds: frozenset[Literal["image", "audio"]] = frozenset()
    inner: Inner | None = None
    inners: list[Inner] = []
    named: Mapping[str, Inner] = {}
    free: Mapping[str, Any] = {}
    on: bool = False


def read(values: object, **options: Any) -> tuple[Outer, list[Problem]]:
    problems: list[Problem] = []
    return read_struct(Outer, values, problems, **options), problems


def test_what_fits_is_taken_as_it_is_meant() -> None:
    made, problems = read(
        {
            "wait": "1m30s",
            "pause": "2s",
            "size": "2KiB",
            "kinds": ["image"],
            "inner": {"name": "n"},
            "inners": [{"name": "a"}, {"name": "b", "many": 2}],
            "named": {"x": {"name": "c"}},
            "free": {"any": [1, {}]},
            "maybe": None,
        }
    )
    assert problems == []
    assert made == Outer(
        wait=90.0,
        pause=2.0,
        size=2048,
        kinds=frozenset({"image"}),
        inner=Inner("n"),
        inners=[Inner("a"), Inner("b", 2)],
        named={"x": Inner("c")},
        free={"any": [1, {}]},
    )


@pytest.mark.parametrize(
    ("values", "path", "says"),
    [
        pytest.param({"prot": 1}, "at.prot", "did you mean `at.port`?", id="nearly a key"),
        pytest.param({"url": 1}, "at.url", "did you mean `at.base_url`?", id="a word of a key"),
        pytest.param({"zzz": 1}, "at.zzz", "`[at]` has `port`, `base_url`", id="nothing like it"),
        pytest.param({"port": 10}, "at.port", "an integer from 0 to 9, not the number 10", id="range"),
        pytest.param({"port": "1"}, "at.port", "not the string '1'. Fix: write for example `port = 3`", id="type"),
        pytest.param({"base_url": None}, "at.base_url", "must be a string, not None", id="nothing"),
        pytest.param({"wait": "soon"}, "at.wait", "a duration", id="duration"),
        pytest.param({"wait": 0}, "at.wait", "a duration above 0", id="duration of nothing"),
        pytest.param({"word": "hihg"}, "at.word", '(did you mean "high"?)', id="word"),
        pytest.param({"maybe": "c"}, "at.maybe", 'one of "a", "b"', id="optional word"),
        pytest.param({"lines": "a"}, "at.lines", "a list of strings", id="text for a list"),
        pytest.param({"lines": [2]}, "at.lines[0]", "a string, not the number 2", id="entry of a list"),
        pytest.param({"kinds": ["smell"]}, "at.kinds[0]", 'one of "image", "audio"', id="entry of a set"),
        pytest.param({"inner": 3}, "at.inner", "must be a table, not the number", id="number for a table"),
        pytest.param({"inner": {"name": 3}}, "at.inner.name", "a string", id="inside a table"),
        pytest.param({"inner": {}}, "at.inner.name", "is missing. Fix: `[at.inner]` needs it", id="needed"),
        pytest.param({"inners": [{}]}, "at.inners[0].name", "is missing", id="needed in a list"),
        pytest.param({"inners": {}}, "at.inners", "a list of tables", id="table for a list"),
        pytest.param({"inner": None, "lines": 1}, "at.lines", "a list", id="nothing where nothing may be"),
        pytest.param({"named": []}, "at.named", "a table of tables", id="list for a table"),
        pytest.param({"on": "true"}, "at.on", "true or false, not the string 'true'", id="boolean"),
        pytest.param(
            3, "at", "must be a table, not the number. Fix: write `[at]` above its keys", id="no table at all"
        ),
    ],
)
def test_a_problem_has_its_path_and_leaves_the_default(values: object, path: str, says: str) -> None:
    made, (problem,) = read(values, path=("at",))
    assert dotted(problem.key) == path
    assert says in problem.text
    assert made == Outer()


def test_every_problem_is_found_and_what_is_right_is_kept() -> None:
    made, problems = read({"port": -1, "lines": ["a", 1, "b"], "wat": 0, "word": "high"})
    assert [dotted(problem.key) for problem in problems] == ["port", "lines[1]", "wat"]
    assert made == Outer(lines=["a", "b"], word="high")


def test_text_of_the_environment_stands_for_any_type_and_is_never_shown() -> None:
    paths = {(name,) for name in fields_of(Outer)}
    made, problems = read({"port": "4", "on": "true", "lines": "a, b", "word": "sesame"}, lax=paths)
    assert made == Outer(port=4, on=True, lines=["a", "b"])
    assert [problem.text for problem in problems] == [
        '`word` must be one of "low", "high". Fix: write for example `word = "low"`, which is the default'
    ]


@pytest.mark.parametrize("name", ["api_key", "password"])
def test_a_wrong_secret_is_not_shown(name: str) -> None:
    shape = msgspec.defstruct("Shape", [(name, str, "")])
    problems: list[Problem] = []
    read_struct(shape, {name: 123456}, problems)
    assert "123456" not in problems[0].text


def test_a_struct_that_is_there_already_is_taken() -> None:
    assert read({"inner": Inner("made")}) == (Outer(inner=Inner("made")), [])


def test_fields_may_come_from_several_structs() -> None:
    problems: list[Problem] = []
    found = read_fields({**fields_of(Inner), **fields_of(Outer)}, {"name": "n", "port": 1, "x": 1}, problems)
    assert found == {"name": "n", "port": 1}
    assert [problem.key for problem in problems] == [("x",)]


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from(["5s", "low"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*fields_of(Outer), "name", "x y"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_ANY)
def test_whatever_comes_gives_a_struct_or_problems_and_never_an_error(values: object) -> None:
    made, problems = read(values)
    assert isinstance(made, Outer)
    assert all(problem.text for problem in problems)
    assert read(msgspec.to_builtins(made)) == (made, [])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (list[Annotated[str, Meta(min_length=1)]], "a list of strings"),
        (frozenset[Literal["a"]], "a list of words"),
        (Mapping[str, Any], "a table of values"),
        (Mapping[str, list[str]], "a table of lists of strings"),
        (int | None, "an integer"),
        (Annotated[str, Meta(min_length=1)], "a string that is not empty"),
    ],
    ids=str,
)
def test_types_have_words(kind: Any, words: str) -> None:
    assert describe_type(kind) == words
