"""Checking a file: every problem, with its place and the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

from isthmus.errors import ConfigError
from isthmus.providers import check_provider_file, load_provider

PROBLEMS = {
    "a section misspelled": ("[paramters]\n", 1, "`paramters` is not a known key. Fix: did you mean `parameters`?"),
    "a field misspelled": (
        "[reasoning]\nefort = 'native'\n",
        2,
        "`reasoning.efort` is not a known key. Fix: did you mean `reasoning.effort`?",
    ),
    "a field of a rule": (
        "[parameters]\ntemperature = { hi = 1 }\n",
        2,
        "`parameters.temperature.hi` is not a known key. Fix: did you mean `parameters.temperature.high`?",
    ),
    "a field of a model": (
        '[models."x"]\n[models."x".limits]\ncontxt = 1\n',
        3,
        "`models.x.limits.contxt` is not a known key. Fix: did you mean `models.x.limits.context`?",
    ),
    "a key of a model": ('[models."x"]\nsample = "x"\n', 2, "`models.x.sample` is not a known key. Fix: did you mean"),
    "nothing like it": ("[reply]\nzzz = 1\n", 2, "`reply.zzz` is not a known key. Fix: remove it; `[reply]` has"),
    "an endpoint field": ("[endpoint]\nurl = 'x'\n", 2, "`endpoint.url` is not a known key. Fix: did you mean `end"),
    "an alternative": (
        "[endpoint.alternatives.eu]\ntitle = 'EU'\n",
        1,
        "`endpoint.alternatives.eu.base_url` is missing",
    ),
    "a responses field": (
        "[responses]\nstatless = true\n",
        2,
        "`responses.statless` is not a known key. Fix: did you mean `responses.stateless`?",
    ),
    "a number as text": (
        "[limits]\ncontext = 'big'\n",
        2,
        "`limits.context` must be an integer, not the string 'big'",
    ),
    "text as a number": ("title = 3\n", 1, "`title` must be a string, not the number 3"),
    "a list of numbers": ("sources = [1]\n", 1, "`sources[0]` must be a string, not the number 1"),
    "a text for a list": ("sources = 'x'\n", 1, "`sources` must be a list of strings, not the string 'x'"),
    "a wrong word": ("[messages]\nreplay = 'nevr'\n", 2, '`messages.replay` must be one of "never", '),
    "a wrong modality": ("[messages]\ninput = ['smell']\n", 2, "`messages.input[0]` must be one of "),
    "a section that is no table": ("limits = 3\n", 1, "`limits` must be a table, not the number"),
    "a model that is no table": ("[models]\nx = 1\n", 2, "`models.x` must be a table"),
    "models that are no table": ("models = 3\n", 1, "`models` must be a table of tables"),
    "an unknown effort": (
        "[reasoning]\nscale = ['lo']\n",
        2,
        "`reasoning.scale` names `lo`, which is not an effort. Fix: did you mean `low`?",
    ),
    "an unknown mapped effort": (
        "[reasoning]\nmap = { low = 'hgh' }\n",
        2,
        "`reasoning.map` names `hgh`, which is not",
    ),
    "a scale upside down": ("[reasoning]\nscale = ['high', 'low']\n", 2, "`reasoning.scale` must go from the weakest"),
    "another name": ("name = 'other'\n", 1, "`name` is `other`, but the file is called `mine.toml`"),
    "a date of another shape": ("checked = 'today'\n", 1, "`checked` must be a day in quotes"),
    "an address without scheme": ("[endpoint]\nbase_url = 'localhost:1'\n", 2, "`endpoint.base_url` must start with"),
    "a true where false would take back": (
        "[limits]\noutput = true\n",
        2,
        "`limits.output` must be an integer, not the boolean true",
    ),
}


@pytest.mark.parametrize(("text", "line", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_is_named_with_its_line_and_its_fix(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    (found,) = check_provider_file(path)
    assert found.text.startswith(f"{path}:{line}: {problem}"), found.text
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
    assert words in found.text
