"""What the page on upgrades says is done: a store of 0.1.0 is copied, upgraded, and given back as it was."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from doc_pages import ROOT, environment, read_blocks

PAGE = ROOT / "docs" / "upgrading.md"
RELEASED = ROOT / "tests" / "store" / "released" / "0.1.0"


def run(command: str, home: Path) -> str:
    own = {**environment(home), "ISTHMUS_LOG_LEVEL": "error"}
    ran = subprocess.run(["sh", "-ec", command], cwd=home, env=own, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def block(beginning: str) -> str:
    (found,) = [each.text for each in read_blocks(PAGE) if each.text.startswith(beginning)]
    return found


def test_a_store_of_0_1_0_is_upgraded_and_given_back(tmp_path: Path) -> None:
    place = tmp_path / ".local" / "share" / "isthmus"
    place.mkdir(parents=True)
    for ending in ("", ".key"):
        shutil.copy(RELEASED / f"isthmus.sqlite{ending}", place / f"isthmus.db{ending}")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    run(block("mkdir before"), tmp_path)
    steps = block("pip install --upgrade").splitlines()[1:]  # all but the installing
    said = run("\n".join(steps), tmp_path)
    assert "all of them are as they were written" in said
    assert "responses      8" in run("isthmus store stats", tmp_path)
    assert (place / "isthmus.db").read_bytes() != before["isthmus.db"]
    run(block("rm -f"), tmp_path)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_every_setting_that_it_names_is_there() -> None:
    known = (ROOT / "docs" / "reference" / "config.md").read_text()
    named = set(re.findall(r"`((?:server|trace|store|providers)\.[\w.]+)", PAGE.read_text()))
    assert len(named) >= 5
    for name in named:
        section, _, key = name.rpartition(".")
        part = known.partition(f"## `[{section}]`")[2].partition("\n## ")[0]
        assert f"| `{key}` |" in part, name
