"""The real schemathesis over our OpenAPI document, with keys on; `make check-fuzz` does it for longer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = Path(sys.prefix) / "fuzz" / "bin" / "schemathesis"


@pytest.mark.real
@pytest.mark.parametrize("who", ["narrow", "config", "operator"])
def test_whatever_the_document_allows_nothing_of_ours_fails_and_nobody_gets_in_without_a_key(who: str) -> None:
    command = [sys.executable, "-m", "bench.fuzz.specified", "--schemathesis", str(PROGRAM), "--examples", "2"]
    ran = subprocess.run(
        [*command, "--seed", "22", "--who", who], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4_000:] + ran.stderr[-1_000:]
    assert "nothing was found" in ran.stdout
