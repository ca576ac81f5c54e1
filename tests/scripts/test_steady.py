"""What fails beside others is tried once more alone: a defect stays red, chance is named, and many are never chance."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BARE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
SCRIPT = Path(__file__).parents[2] / "scripts/steady.sh"
FAILS_AT_FIRST = """
from pathlib import Path
def test_once():
    first = not Path("seen").exists()
    Path("seen").touch()
    assert not first
"""


def steady(folder: Path, *files: str) -> tuple[int, str]:
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    runner = folder / "pytest"
    runner.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pytest -p xdist "$@"\n')
    runner.chmod(0o755)
    ended = subprocess.run(
        ["sh", str(SCRIPT), "some", str(runner), "-q", "-n", "2"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ended.returncode, ended.stdout


def test_what_passes_is_run_once(tmp_path: Path) -> None:
    code, said = steady(tmp_path, "def test_it(): pass")
    assert (code, said.count("1 passed")) == (0, 1)
    assert "UNSTEADY" not in said


def test_what_failed_by_its_company_is_named_and_stops_nobody(tmp_path: Path) -> None:
    code, said = steady(tmp_path, FAILS_AT_FIRST, "def test_other(): pass")
    assert code == 0
    assert said.endswith("some: UNSTEADY, passed only alone:\n    test_0.py::test_once\n")


def test_what_fails_alone_is_red(tmp_path: Path) -> None:
    code, said = steady(tmp_path, FAILS_AT_FIRST, "def test_bad(): assert False")
    assert code == 1
    assert "UNSTEADY" not in said


def test_many_are_not_tried_again(tmp_path: Path) -> None:
    many = "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test_bad(n): assert False"
    code, said = steady(tmp_path, many)
    assert code == 1
    assert "once more" not in said


@pytest.mark.parametrize("text", ["", "import nowhere_at_all"], ids=["no test", "a broken file"])
def test_what_is_no_failure_of_a_test_is_not_tried_again(tmp_path: Path, text: str) -> None:
    code, said = steady(tmp_path, text)
    assert code != 0
    assert "once more" not in said
