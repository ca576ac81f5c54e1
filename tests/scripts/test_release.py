"""`scripts/release.py`: nothing is released whose version, changelog, tag and files do not agree."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from doc_pages import ROOT
from isthmus import __version__
from scripted import load_script

release: ModuleType = load_script("release")
ADDRESS = "https://git.example/us/isthmus"
LOG = "# Changelog\n\nAll of it.\n\n## 1.2.0 - 2026-12-01\n\n- New.\n- Newer.\n\n## 1.1.0 - 2026-11-01\n\n- Old.\n"


def tree(folder: Path, *, version: str = "1.2.0", changelog: str = LOG) -> Path:
    (folder / "src" / "isthmus").mkdir(parents=True)
    (folder / "src" / "isthmus" / "__init__.py").write_text(f'"""It."""\n\n__version__ = "{version}"\n')
    (folder / "CHANGELOG.md").write_text(changelog)
    (folder / "pyproject.toml").write_text(f'[project.urls]\nRepository = "{ADDRESS}"\n')
    return folder


def test_what_agrees_is_ready(tmp_path: Path) -> None:
    here = tree(tmp_path)
    assert list(release.problems(here, "v1.2.0", ADDRESS)) == []
    assert list(release.problems(here, None)) == []


@pytest.mark.parametrize(
    ("version", "changelog", "tag", "repository", "says"),
    [
        ("1.2.0", LOG, "v1.2.1", None, "the tag is `v1.2.1` and `__version__` is `1.2.0`"),
        ("1.2.0", LOG, "1.2.0", None, "they must be `v1.2.0` and `1.2.0`"),
        ("1.2", LOG, None, None, "write it as `1.2.3`"),
        ("1.3.0", LOG, "v1.3.0", None, "CHANGELOG.md begins with `1.2.0`"),
        ("1.2.0", LOG.replace("## 1.2.0 - 2026-12-01", "## Unreleased"), None, None, "begins with `Unreleased`"),
        ("1.2.0", LOG.replace(" - 2026-12-01", ""), None, None, "has no date"),
        ("1.2.0", LOG.replace("- New.\n- Newer.\n", ""), None, None, "says nothing of 1.2.0"),
        ("1.2.0", "# Changelog\n", None, None, "begins with `nothing`"),
        ("1.2.0", LOG, "v1.2.0", "https://git.example/them/isthmus", f"pyproject.toml says `{ADDRESS}`"),
    ],
)
def test_what_disagrees_is_told(
    tmp_path: Path, version: str, changelog: str, tag: str | None, repository: str | None, says: str
) -> None:
    told = list(release.problems(tree(tmp_path, version=version, changelog=changelog), tag, repository))
    assert any(says in each for each in told), told


def test_only_the_two_files_of_the_version_are_published(tmp_path: Path) -> None:
    here = tree(tmp_path / "tree")
    dist = tmp_path / "dist"
    dist.mkdir()
    for name in ("isthmus-1.2.0.tar.gz", "isthmus-1.2.0-py3-none-any.whl", "isthmus.cdx.json"):
        (dist / name).touch()
    assert list(release.problems(here, None, dist=dist)) == []
    (dist / "isthmus-1.1.0.tar.gz").touch()
    assert "build anew with `make dist`" in " ".join(release.problems(here, None, dist=dist))


def test_notes_are_the_section_of_the_version() -> None:
    assert release.notes(LOG, "1.2.0") == "- New.\n- Newer."
    assert release.notes(LOG, "1.1.0") == "- Old."
    with pytest.raises(SystemExit, match=r"no section `## 9\.9\.9`"):
        release.notes(LOG, "9.9.9")


def test_this_tree_is_being_worked_on_or_ready() -> None:
    told = list(release.problems(ROOT, None))
    unreleased = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert unreleased is not None
    working = [
        f"`__version__` is `{__version__}`; write it as `1.2.3` or `1.2.3rc1`",
        f"CHANGELOG.md begins with `Unreleased`; it must begin with `## {__version__} - YYYY-MM-DD`",
    ]
    assert told == (working if unreleased[1] == "Unreleased" else [])


def test_the_command_says_why_and_fails(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "release.py"), "check", "--tag", "v0.0.0"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert f"not ready: the tag is `v0.0.0` and `__version__` is `{__version__}`" in ran.stderr


def test_the_version_stands_in_one_place() -> None:
    assert release.version_of(ROOT) == __version__
    assert not re.search(r"^version\s*=", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
