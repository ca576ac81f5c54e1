"""`scripts/make_site.py`: the index becomes the navigation and `llms.txt`, and links lead to the same as before."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from doc_pages import ROOT
from scripted import load_script

script = load_script("make_site")

INDEX = """# Documentation

Words before.

## Start: the first minutes

- [Begin](begin.md): from nothing,
  to something

## Guides: do it

### Clients

- [With `codex`](guides/codex.md)

## Decisions: why

| | |
|---|---|
| 0001 | [One](decisions/0001-one.md), replaced by 0002 |

## Project

- [Changes](../CHANGELOG.md)
"""


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout with a few pages."""
    pages = {
        "README.md": "# Front\n\nWhat it **is**.\n\n![a](docs/images/a.svg) [changes](CHANGELOG.md)\n",
        "CHANGELOG.md": "# Changes\n",
        "docs/README.md": INDEX,
        "docs/begin.md": "# Begin\n\n[on](guides/codex.md#setup), `[not](a.link)`\n",
        "docs/guides/codex.md": "# Codex\n\n## Setup\n\n"
        "[unit](../../deploy/x.service) [all](../../deploy) [back](../README.md)\n```sh\n[not](a.link)\n```\n",
        "docs/decisions/0001-one.md": "# 0001\n",
        "docs/images/a.svg": "<svg/>",
        "deploy/x.service": "[Unit]\n",
        "scripts/site/iframe-worker.js": "",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_headings_and_lines_of_the_index_are_the_navigation(house: Path) -> None:
    sections = script.read_index(INDEX)
    assert tomllib.loads(script.navigation(sections, house))["nav"] == [
        {"Start": [{"Isthmus": "index.md"}, {"Begin": "begin.md"}]},
        {"Guides": [{"Clients": [{"With codex": "guides/codex.md"}]}]},
        {"Decisions": [{"One": "decisions/0001-one.md"}]},
        {"Project": [{"Changes": "project/changelog.md"}]},
    ]
    assert sections[0].entries[0].about == "from nothing, to something"


def test_a_page_that_the_index_does_not_list_is_told(house: Path) -> None:
    sections = script.read_index(INDEX)
    assert script.missing_pages(sections, house) == set()
    (house / "docs" / "lost.md").write_text("# Lost\n")
    assert script.missing_pages(sections, house) == {"docs/lost.md"}
    with pytest.raises(SystemExit, match=r"does not list docs/lost\.md"):
        script.make_site(house, house / "build", "false")


def test_every_page_of_this_house_is_in_its_index() -> None:
    sections = script.read_index((ROOT / "docs" / "README.md").read_text())
    assert script.missing_pages(sections) == set()
    listed = [entry.source for section in sections for entry in section.all_entries()]
    assert len(listed) == len(set(listed)), "a page is listed once"
    assert all((ROOT / source).is_file() for source in listed)
    assert [section.title for section in sections] == [
        "Start",
        "Guides",
        "Concepts",
        "Reference",
        "Decisions",
        "Project",
    ]


def test_links_are_bent_to_where_things_are_in_the_site(house: Path) -> None:
    staged = house / "staged"
    script.stage(house, staged)
    assert "](images/a.svg) [changes](project/changelog.md)" in (staged / "index.md").read_text()
    begun = (staged / "begin.md").read_text()
    assert "[on](guides/codex.md#setup)" in begun
    assert "`[not](a.link)`" in begun
    guide = (staged / "guides" / "codex.md").read_text()
    assert "[unit](../files/deploy/x.service.md) [all](../files/deploy/index.md) [back](../contents.md)" in guide
    assert "```sh\n[not](a.link)\n```" in guide
    assert "[Unit]" in (staged / "files" / "deploy" / "x.service.md").read_text()
    assert "(x.service.md)" in (staged / "files" / "deploy" / "index.md").read_text()


def test_a_link_that_leads_nowhere_stops_it(house: Path) -> None:
    (house / "docs" / "begin.md").write_text("[gone](nowhere.md)\n")
    with pytest.raises(SystemExit, match=r"docs/begin\.md: the link to nowhere\.md leads nowhere"):
        script.stage(house, house / "staged")


def test_language_models_get_a_list_and_the_whole(house: Path) -> None:
    sections = script.read_index(INDEX)
    staged = house / "staged"
    script.stage(house, staged)
    summary = script.first_paragraph((house / "README.md").read_text())
    listed = script.llms(sections, summary, "https://docs.example/", house)
    assert listed.startswith("# Isthmus\n\n> What it is.\n")
    assert "- [Begin](https://docs.example/begin.md): from nothing, to something\n" in listed
    whole = script.llms_full(sections, staged, house)
    assert [part in whole for part in ("# Front", "# Begin", "# Codex", "# 0001", "# Changes")] == [True] * 5
    assert whole.index("# Front") < whole.index("# Begin") < whole.index("# Codex")
