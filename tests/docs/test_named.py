"""Whatever the pages name exists: commands with their options, targets of make, settings, files of the repository."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from doc_pages import ROOT, all_pages
from isthmus.cli.commands import app
from isthmus.config.reference import config_reference

PAGES = [page for page in all_pages() if page.name != "CHANGELOG.md"]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
OTHERS = {"tools.supported", "tools.degraded", "server.problems"}
"""Words of the founding documents, and an attribute of the library's: no settings, though they look like some."""
OURS = ("src/", "tests/", "docs/", "examples/", "deploy/", "bench/", "scripts/")


def spans(page: Path) -> Iterator[str]:
    """Code within the prose, and the lines of shell blocks."""
    text = page.read_text()
    for language, block in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if language in ("sh", "console"):
            yield from (line.strip().removeprefix("$ ") for line in block.replace("\\\n", "").splitlines())
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL))


def commands(page: Path) -> Iterator[list[str]]:
    """What is written behind `isthmus`, up to where a shell would end the command."""
    for span in spans(page):
        found = re.match(r"(?:[A-Z_]+=\S* )*(?:\.venv/bin/|uvx --from \. |uvx )?isthmus (.+)", span)
        if found:
            words = shlex.split(re.split(r" [|#>&]|;|\$\(", found[1])[0].replace("…", ""), posix=False)
            yield words[: words.index("--")] if "--" in words else words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_commands_and_their_options_exist(page: Path) -> None:
    wrong = [" ".join(words) for words in commands(page) if not _is_known(words)]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_targets_of_make_exist(page: Path) -> None:
    named = [found for span in spans(page) for found in re.findall(r"(?:^|&& |[A-Z]=\S+ )make ([a-z-]+)", span)]
    assert [name for name in named if name not in TARGETS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_settings_exist(page: Path) -> None:
    keys, sections = _settings()
    named = {span for span in spans(page) if re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", span)}
    unknown = {name for name in named if name.split(".")[0] in sections and not any(key.match(name) for key in keys)}
    # Events of the log, and places in the code, look the same; so do files, and fields of an answer's `usage`.
    unknown = {name for name in unknown - OTHERS if name not in _code()}
    assert {name for name in unknown if not re.search(r"^usage\.|\.json$", name)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_its_files_are_there(page: Path) -> None:
    made = re.findall(r"Write `(\S+)`", page.read_text())
    named = [span for span in spans(page) if span.startswith(OURS) and not re.search(r"[ *<>…{]|NAME", span)]
    named = [name for name in named if name not in made]
    assert [name for name in named if not (ROOT / name.split("::")[0]).exists()] == []


def test_every_example_is_on_the_page_of_examples() -> None:
    folder = ROOT / "examples"
    page = (folder / "README.md").read_text()
    files = [path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if "__pycache__" not in path.parts]
    assert [name for name in files if f"`{name}`" not in page and name != "README.md"] == []


def test_a_command_that_is_not_there_would_be_seen() -> None:
    assert not _is_known(["serve", "--prot", "1"])
    assert not _is_known(["keys", "make"])
    assert _is_known(["keys", "create", "ada", "--team", "red"])


def _is_known(words: list[str]) -> bool:
    command: Any = get_command(app)
    while words and hasattr(command, "list_commands") and not words[0].startswith("-"):
        below = command.get_command(None, words[0])
        if below is None:
            # `isthmus NAME` stands for any of them.
            return not re.fullmatch(r"[a-z-]+", words[0])
        command, words = below, words[1:]
    options = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)]
    return all(option in options | {"--help"} for option in given)


@cache
def _settings() -> tuple[list[re.Pattern[str]], set[str]]:
    """Every key as a pattern, `NAME` standing for any word; and the sections that they are in."""
    names: list[str] = []
    section = ""
    for line in config_reference().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip("`[]").replace("Top level", "")
        if row := re.match(r"\| `([\w.]+)`", line):
            names += [f"{section}.{row[1]}" if section else row[1], section]
    # What stands above a key is named, too.
    every = {".".join(name.split(".")[:end]) for name in names for end in range(1, name.count(".") + 2)}
    return [re.compile(re.escape(name).replace("NAME", r"\w+") + "$") for name in every], {
        name.split(".")[0] for name in names
    }


@cache
def _code() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
