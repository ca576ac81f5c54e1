"""Checking a file: every problem, with its place and the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.providers import check_provider_file, load_provider

PROBLEMS = {
    "a section misspelled": ("[paramters]\n", "`paramters` is not known; did you mean `parameters`?"),
    "a field misspelled": ("[reasoning]\nefort = 'native'\n", "`reasoning.efort` is not known; did you mean `effort`?"),
    "a field of a rule": (
        "[parameters]\ntemperature = { hi = 1 }\n",
        "`parameters.temperature.hi` is not known; did you mean `high`?",
    ),
    "a field of a model": (
        '[models."x".limits]\ncontxt = 1\n',
        '`models."x".limits.contxt` is not known; did you mean `context`?',
    ),
    "a key of a model": ('[models."x"]\nsample = "x"\n', '`models."x".sample` is not known; did you mean `example`?'),
    "nothing like it": ("[reply]\nzzz = 1\n", "`reply.zzz` is not known; known here: cached_tokens,"),
    "an endpoint field": ("[endpoint]\nurl = 'x'\n", "`endpoint.url` is not known; did you mean `base_url`?"),
    "an alternative": ("[endpoint.alternatives.eu]\ntitle = 'EU'\n", "`endpoint.alternatives.eu` needs `base_url`"),
    "a responses field": (
        "[responses]\nstatless = true\n",
        "`responses.statless` is not known; did you mean `stateless`?",
    ),
    "a number as text": ("[limits]\ncontext = 'big'\n", "`limits.context`: expected int | null, got str"),
    "text as a number": ("title = 3\n", "`title`: expected str, got int"),
    "a list of numbers": ("sources = [1]\n", "`sources[0]`: expected str, got int"),
    "a wrong word": ("[messages]\nreplay = 'maybe'\n", "`messages.replay`: invalid enum value 'maybe'"),
    "a wrong modality": ("[messages]\ninput = ['smell']\n", "`messages.input[0]`: invalid enum value 'smell'"),
    "a model that is no table": ("[models]\nx = 1\n", '`models."x"` must be a table'),
    "models that are no table": ("models = 3\n", "`models` must be a table of tables"),
    "an unknown effort": (
        "[reasoning]\nscale = ['lo']\n",
        "`reasoning.scale`: `lo` is not an effort; did you mean `low`?",
    ),
    "an unknown mapped effort": ("[reasoning]\nmap = { low = 'hgh' }\n", "`reasoning.map`: `hgh` is not an effort"),
    "a scale upside down": ("[reasoning]\nscale = ['high', 'low']\n", "`reasoning.scale` must go from the weakest"),
    "another name": ("name = 'other'\n", "`name` is `other`, but the file is called `mine.toml`"),
    "a date of another shape": ("checked = 'today'\n", "`checked` must be a day in quotes"),
    "an address without scheme": ("[endpoint]\nbase_url = 'localhost:1'\n", "`endpoint.base_url` must start with"),
    "a true where false would take back": (
        "[limits]\noutput = true\n",
        "`limits.output`: expected int | null, got bool",
    ),
}


@pytest.mark.parametrize(("text", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_named_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    (found,) = check_provider_file(path)
    assert found.startswith(f"{path}: {problem}"), found
    with pytest.raises(ConfigError) as caught:
        load_provider("mine", [tmp_path])
    assert problem in caught.value.message
    assert str(path) in caught.value.message


def test_all_problems_are_found_at_once(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("colour = 1\n[limits]\ncontext = 'x'\n[models.'a']\nprice = 2\n", encoding="utf-8")
    assert len(check_provider_file(path)) == 3


def test_a_sound_file_has_no_problems(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("[parameters]\ntemperature = false\n[models.'a'.tools]\nmax = false\n", encoding="utf-8")
    assert check_provider_file(path) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"a = [", "not valid TOML"), (b"a = '\xff'", "not valid TOML"), (None, "cannot be read")],
    ids=["unfinished", "not UTF-8", "missing"],
)
def test_a_file_that_is_no_toml_is_a_problem_and_not_a_crash(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "mine.toml"
    if content is not None:
        path.write_bytes(content)
    (found,) = check_provider_file(path)
    assert words in found
