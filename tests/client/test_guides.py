"""The code in the guides is code: every block compiles, and every whole program runs offline."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCKS = [
    (f"{name}:{number}", code)
    for name in ("client.md", "tools.md")
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", (GUIDES / name).read_text(), re.S | re.M), 1)
]


@pytest.mark.parametrize("code", [code for _, code in BLOCKS], ids=[name for name, _ in BLOCKS])
def test_the_code_in_the_guides_runs(code: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        timeout=200,
    )
    assert done.returncode == 0, done.stderr


def test_both_guides_have_code() -> None:
    assert len(BLOCKS) >= 12
