"""Runs a script of `tests/real/clients/node`: a real client in JavaScript, which tells what came of it as JSON."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NODE = Path(__file__).parent / "real" / "clients" / "node"


def run_node(script: str, *arguments: str) -> dict[str, Any]:
    line = ["node", script, *arguments]
    ran = subprocess.run(line, cwd=installed_modules(), capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told


def installed_modules() -> Path:
    """The folder whose modules are those that are pinned."""
    if shutil.which("npm") is None:
        pytest.skip("needs Node.js and npm")
    installed, locked = NODE / "node_modules" / ".package-lock.json", NODE / "package-lock.json"
    if not installed.is_file() or installed.stat().st_mtime < locked.stat().st_mtime:  # others are pinned by now
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=NODE, check=True, timeout=300)
    return NODE
