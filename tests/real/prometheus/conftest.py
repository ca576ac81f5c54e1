"""The real programs: Debian's, unpacked below the virtual environment, or whatever is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from doc_pages import ROOT

PLACE = ROOT / ".venv" / "prometheus" / "usr" / "bin"
Promtool = Callable[..., str]


def program(name: str) -> str:
    found = shutil.which(name, path=f"{PLACE}{os.pathsep}{os.environ.get('PATH', '')}")
    if found is None:
        pytest.skip(f"there is no `{name}`; `make test-prometheus` fetches it")
    return found


@pytest.fixture
def promtool() -> Promtool:
    """Runs it; what it says. A test fails with that, where it finds fault."""
    path = program("promtool")

    def run(*arguments: str | Path, given: bytes = b"") -> str:
        done = subprocess.run([path, *map(str, arguments)], input=given, capture_output=True, timeout=60, check=False)
        said = (done.stdout + done.stderr).decode()
        assert done.returncode == 0, said
        return said

    return run


@pytest.fixture
def prometheus() -> str:
    return program("prometheus")
