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
    if shutil.which("npm") is None:
        pytest.skip("needs Node.js and npm")
    if not all((NODE / "node_modules" / name).is_dir() for name in ("@openai/agents", "@anthropic-ai/sdk")):
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=NODE, check=True, timeout=300)
    line = ["node", script, *arguments]
    ran = subprocess.run(line, cwd=NODE, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    told: dict[str, Any] = json.loads(ran.stdout)
    return told
