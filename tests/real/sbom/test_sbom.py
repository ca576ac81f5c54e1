"""`make sbom` lists everything that an installation brings along, at the versions of the lock, and twice the same."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from doc_pages import ROOT
from isthmus import __version__

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sbom")


@pytest.fixture(scope="module")
def written(place: Path) -> bytes:
    return _make(place / "once.json")


def test_it_names_what_the_lock_names_for_this_machine(written: bytes) -> None:
    found = {_plain(each["name"]): each["version"] for each in json.loads(written)["components"]}
    assert found == _locked()


def test_it_says_whose_list_it_is_and_who_needs_whom(written: bytes) -> None:
    listed = json.loads(written)
    whose = listed["metadata"]["component"]
    assert (listed["bomFormat"], whose["name"], whose["version"]) == ("CycloneDX", "isthmus", __version__)
    needed = {each["ref"]: each.get("dependsOn", ()) for each in listed["dependencies"]}
    ours = needed[listed["metadata"]["component"]["bom-ref"]]
    assert {"aiohttp", "msgspec", "uvicorn"} <= {name.split("==")[0] for name in ours}


def test_the_same_lock_gives_the_same_list(written: bytes, place: Path) -> None:
    assert _make(place / "again.json") == written


def _make(target: Path) -> bytes:
    environment_of = {"PYTHON": sys.executable, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = subprocess.run(
        ["sh", "scripts/sbom.sh", str(target), str(target.parent)],
        cwd=ROOT,
        env=environment_of,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return target.read_bytes()


def _locked() -> dict[str, str]:
    """Of the lock, what is meant for this machine."""
    found = {}
    for line in (ROOT / "requirements-run.lock").read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            asked = Requirement(line.rstrip("\\ "))
            if asked.marker is None or asked.marker.evaluate():
                found[_plain(asked.name)] = next(iter(asked.specifier)).version
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
