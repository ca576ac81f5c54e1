"""The guides for clients: each is in the index, and whatever it shows is run, here or with the real package."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from doc_pages import ADDRESS, ROOT, read_blocks

INDEX = ROOT / "docs" / "guides" / "clients.md"
PAGES = sorted((ROOT / "docs" / "guides" / "clients").glob("*.md"))
RUN = {"python", "js", "console"}
"""What `tests/real/clients/test_guides.py` runs; `text` is what came of it, `json` the file that a command reads."""


def test_the_index_has_a_line_for_every_page() -> None:
    linked = re.findall(r"^\| \[[^\]]+\]\(clients/([\w.-]+)\)", INDEX.read_text(), re.MULTILINE)
    assert sorted(linked) == [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_whatever_a_guide_shows_is_run_but_for_the_installation(page: Path) -> None:
    blocks = read_blocks(page)
    assert {block.language for block in blocks} <= RUN | {"text", "json", "sh"}
    assert any(block.language in RUN for block in blocks)
    lines = [line for block in blocks if block.language == "sh" for line in block.text.splitlines()]
    assert all(re.match(r"(pip|npm) install ", line) for line in lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_says_where_the_gateway_is_and_shows_what_comes_of_it(page: Path) -> None:
    blocks = read_blocks(page)
    assert any(ADDRESS in block.text for block in blocks)
    for program, after in pairwise(blocks):
        assert program.language not in ("python", "js") or after.language == "text"
    assert len(page.read_text().splitlines()) < 90, "a guide is short"
