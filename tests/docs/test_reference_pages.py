"""The generated pages of the reference are those that the code and the data give today."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from doc_pages import ROOT
from isthmus.config.known import usable_names
from isthmus.providers import provider_names
from isthmus.providers.find import snapshot_names


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES: dict[str, str] = load_script().make_pages()


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    path = ROOT / "docs" / "reference" / name
    assert path.read_text(encoding="utf-8") == PAGES[name], "run `make reference`"


def test_every_question_has_its_row_and_every_provider_its_column() -> None:
    table = PAGES["providers.md"].split("## Conformance")[1].split("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 30
    assert re.findall(r"`([\w.-]+)`", rows[0]) == provider_names()
    assert {cell.strip() for row in rows[1:] for cell in row.split("|")[2:-1]} == {"✓"}


def test_every_provider_of_the_snapshot_has_its_row() -> None:
    table = PAGES["providers.md"].split("## Providers without a file")[1]
    assert re.findall(r"^\| `([\w.-]+)` \|", table.split("### Not usable")[0], re.MULTILINE) == list(usable_names())
    assert set(re.findall(r"^\| `([\w.-]+)` \|", table, re.MULTILINE)) == set(snapshot_names())
