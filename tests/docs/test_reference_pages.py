"""The generated pages of the reference are those that the code and the data give today."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from types import ModuleType

import pytest

from doc_pages import ROOT
from isthmus.config.known import usable_names
from isthmus.providers import load_provider, provider_names
from isthmus.providers.find import snapshot_names


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCRIPT = load_script()


@cache
def made(name: str) -> str:
    """The page as it would be made; that of providers takes a while."""
    return str(SCRIPT.make_page(name))


@pytest.mark.parametrize("name", SCRIPT.makers())
def test_a_generated_page_is_current(name: str) -> None:
    path = ROOT / "docs" / "reference" / name
    assert path.read_text(encoding="utf-8") == made(name), "run `make reference`"


def tables(part: str) -> list[list[list[str]]]:
    """The tables in it, as cells."""
    blocks = [block.splitlines()[2:] for block in part.split("\n\n") if block.startswith("|")]
    return [[[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in block] for block in blocks]


def test_every_question_has_its_number_and_every_provider_its_line() -> None:
    """Who looks for a provider finds its answers in one line, those of the snapshot as well."""
    questions, files, others = tables(made("providers.md").split("## Conformance")[1].split("\n## ")[0])
    assert [row[0] for row in questions] == [str(number + 1) for number in range(len(questions))]
    assert len(questions) > 45
    assert [row[0] for row in files] == provider_names()
    assert [row[0] for row in others] == list(usable_names())
    assert {len(row) for row in files} == {len(questions) + 1}
    general = sum(row[2] == "every provider" for row in questions)
    assert general > 25
    assert {len(row) for row in others} == {general + 1}
    assert {cell for row in (*files, *others) for cell in row[1:]} == {"✓", "–"}


def test_a_tick_is_an_answer_and_a_dash_is_none() -> None:
    questions, files, _ = tables(made("providers.md").split("## Conformance")[1].split("\n## ")[0])
    numbers = {row[1]: int(row[0]) for row in questions}
    answers = {row[0]: row for row in files}
    messages = numbers["a messages endpoint has an address everywhere and a request that it can take"]
    native = numbers["a native responses endpoint is partial and consistent"]
    assert (answers["deepseek"][messages], answers["groq"][messages]) == ("✓", "–")
    assert (answers["groq"][native], answers["cerebras"][native]) == ("✓", "–")
    assert any(row[int(questions[0][0])] == "✓" for row in files)


def test_each_dialect_of_each_provider_has_its_line() -> None:
    (rows,) = tables(made("providers.md").split("## Dialects")[1].split("\n## ")[0])
    spoken = {(row[0], row[1].strip("*")): row[2:] for row in rows}
    expected = {
        (name, title)
        for name in provider_names()
        for provider in [load_provider(name)]
        for title, there in (("Responses", provider.responses), ("Messages", provider.messages_endpoint))
        if there is not None
    }
    assert expected <= spoken.keys()
    assert spoken["llama-cpp", "Chat Completions"][0] == "json_object, json_schema"
    assert spoken["llama-cpp", "Responses"][0] == "text"
    assert [row[1] for row in rows if row[0] == "openai"] == ["Chat Completions", "**Responses**"]


def test_every_provider_of_the_snapshot_has_its_row() -> None:
    table = made("providers.md").split("## Providers without a file")[1]
    assert re.findall(r"^\| `([\w.-]+)` \|", table.split("### Not usable")[0], re.MULTILINE) == list(usable_names())
    assert set(re.findall(r"^\| `([\w.-]+)` \|", table, re.MULTILINE)) == set(snapshot_names())
