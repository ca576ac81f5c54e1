"""The public API under `mypy --strict`, seen from outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TYPING = Path(__file__).parents[1] / "typing"
OPTIONS = ("--strict", "--warn-unused-ignores", "--config-file=", "--cache-dir", ".mypy_cache")


@pytest.mark.parametrize("name", ["bridge_user.py", "bridge_mistakes.py"])
def test_a_users_file_is_checked_strictly(name: str) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *OPTIONS, str(TYPING / name)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert checked.returncode == 0, checked.stdout
