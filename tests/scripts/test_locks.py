"""What is installed is what was looked at: every version is pinned, with the digests of its files, and what is shipped
is what is tested."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_pages import ROOT

LOCKS = sorted(ROOT.glob("requirements*.lock"))


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_every_package_has_a_version_and_digests(lock: Path) -> None:
    for block in _blocks(lock):
        assert re.match(r"[A-Za-z0-9._-]+==\S+", block), block.splitlines()[0]
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_what_is_shipped_is_what_is_tested() -> None:
    assert _versions(ROOT / "requirements-run.lock").items() <= _versions(ROOT / "requirements.lock").items()


def test_the_installer_takes_nothing_without_its_digest() -> None:
    installs = re.findall(r"pip install .*-r .*", (ROOT / "scripts" / "setup.sh").read_text())
    assert installs
    assert all("--require-hashes" in line for line in installs)


def _blocks(lock: Path) -> list[str]:
    """One for each package: its line and those below it."""
    return [block for block in re.split(r"\n(?=\S)", lock.read_text().strip()) if not block.startswith("#")]


def _versions(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", lock.read_text(), re.MULTILINE))
