"""The walks of CONTRIBUTING lead where they say: each is taken in a copy of the house, with its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doc_pages import ROOT, WIDTH, Shown, check_output, read_commands

PAGE = ROOT / "CONTRIBUTING.md"
WALKS = {
    part.partition("\n")[0]: part
    for part in re.split(r"^### ", PAGE.read_text().split("## Add something")[1].split("\n## ")[0], flags=re.MULTILINE)[
        1:
    ]
}
pytestmark = pytest.mark.timeout(900)  # a walk starts several programs, one after the other
_PIECE = re.compile(r"`((?:src|tests)/[\w./-]+)`:$|^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_there_is_a_walk_for_whatever_people_add_most() -> None:
    assert list(WALKS) == ["A provider", "A parameter", "A door", "A bound", "A metric"]


@pytest.mark.parametrize("name", WALKS)
def test_a_walk_leads_where_it_says(name: str, tmp_path: Path) -> None:
    house = copy_house(tmp_path / "house")
    changed = make_changes(WALKS[name], house)
    assert any(path.startswith("src/") for path in changed)
    commands = [shown for shown in read_commands(PAGE) if shown.block.text in WALKS[name]]
    assert proofs(name)
    for shown in commands:
        run(shown, house)


@pytest.mark.parametrize("name", WALKS)
def test_its_proof_fails_without_the_change(name: str, tmp_path: Path) -> None:
    """What the walk writes into `tests/` alone is red: the change is what it proves."""
    house = copy_house(tmp_path / "house")
    make_changes(WALKS[name], house, only="tests/")
    for proof in (shown for shown in proofs(name) if "conformance" not in shown.source and "house" not in shown.source):
        with pytest.raises(AssertionError):
            run(proof, house)


def proofs(name: str) -> list[Shown]:
    return [shown for shown in read_commands(PAGE) if shown.block.text in WALKS[name] and "pytest" in shown.source]


def copy_house(house: Path) -> Path:
    """Files are linked where that can be done; whoever changes one makes it anew."""
    for part in ("src", "tests", "deploy"):
        try:
            shutil.copytree(ROOT / part, house / part, copy_function=os.link)
        except (OSError, shutil.Error):
            shutil.copytree(ROOT / part, house / part, dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", house)
    return house


def make_changes(walk: str, house: Path, only: str = "") -> list[str]:
    """A `diff` block changes the file that was last named; any other that follows a name is a new file."""
    path, changed = "", []
    for named, language, text in _PIECE.findall(walk):
        if named:
            path = named
        elif language != "console" and path.startswith(only):
            write(house / path, patched((house / path).read_text(), text) if language == "diff" else text)
            changed.append(path)
    return changed


def patched(text: str, diff: str) -> str:
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"not there, or not only once:\n{before}"
    return text.replace(before, after)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)


def run(shown: Shown, house: Path) -> None:
    home = house.parent
    environment = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(house / "src"),
        "HOME": str(home),
        "COLUMNS": WIDTH,
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        ["sh", "-c", shown.source], cwd=house, env=environment, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == 0, f"{shown}\n{done.stdout[-4_000:]}\n{done.stderr[-2_000:]}"
    check_output(shown, done.stdout)
