"""The real programs: those that `make test-deploy` fetches below the virtual environment, or whatever is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from doc_pages import ROOT

DEPLOY = ROOT / "deploy"
PLACE = ROOT / ".venv" / "deploy"
FOLDERS = (PLACE / "bin", PLACE / "usr" / "sbin", PLACE / "usr" / "bin")


def program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join([*map(str, FOLDERS), os.environ.get("PATH", "")]))
    if found is None:
        pytest.skip(f"there is no `{name}`; `make test-deploy` fetches it")
    return found


def run(name: str, *arguments: str | Path, **environ: str) -> str:
    """What it says. A test fails with that, where it finds fault."""
    command = [program(name), *map(str, arguments)]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **environ}, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr
