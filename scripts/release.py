"""`make release-check`: whether version, changelog, tag and files speak of one release. `notes` prints what is new.

In: this tree, and where they are given a tag, the address of the repository and a folder with what was built. Out: each
reason against releasing it, and exit code 1; or one line. The version stands in `src/isthmus/__init__.py` alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_SECTION: Final = re.compile(r"^## (\S+)(.*)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
_VERSION: Final = r"\d+\.\d+\.\d+((a|b|rc)\d+)?"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["check", "notes", "version"])
    parser.add_argument("--tag", help="the tag that is being released; else the one that this commit has, if any")
    parser.add_argument("--repository", help="where it is released from; must be the address in the metadata")
    parser.add_argument("--dist", type=Path, help="a folder that must hold both files of this version, and no others")
    asked = parser.parse_args()
    if asked.what == "notes":
        print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version_of(ROOT)))
        return
    if asked.what == "version":
        print(version_of(ROOT))
        return
    found = list(problems(ROOT, asked.tag or _tag_here(ROOT), asked.repository, asked.dist))
    for each in found:
        print(f"not ready: {each}", file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"{version_of(ROOT)} is ready to be released")


def problems(tree: Path, tag: str | None, repository: str | None = None, dist: Path | None = None) -> Iterator[str]:
    """Why this tree should not be released; `tag`: the one it has, or is to have."""
    version = version_of(tree)
    if not re.fullmatch(_VERSION, version):
        yield f"`__version__` is `{version}`; write it as `1.2.3` or `1.2.3rc1`"
    if tag is not None and tag != f"v{version}":
        yield f"the tag is `{tag}` and `__version__` is `{version}`; they must be `v{version}` and `{version}`"
    yield from _changelog_problems((tree / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    address = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    if repository is not None and repository.rstrip("/").lower() != address.lower():
        yield f"`project.urls` in pyproject.toml says `{address}`, and this is `{repository}`; write the true one there"
    if dist is not None:
        expected = {f"isthmus-{version}.tar.gz", f"isthmus-{version}-py3-none-any.whl"}
        found = {path.name for path in dist.iterdir() if path.name.endswith((".whl", ".gz"))}
        if found != expected:
            yield f"`{dist}` holds {sorted(found)} and should hold {sorted(expected)}; build anew with `make dist`"


def version_of(tree: Path) -> str:
    found = re.search(r'^__version__ = "(.*)"$', (tree / "src/isthmus/__init__.py").read_text("utf-8"), re.MULTILINE)
    if found is None:
        sys.exit('`src/isthmus/__init__.py` has no line `__version__ = "…"`')
    return found[1]


def notes(changelog: str, version: str) -> str:
    """What the changelog says of a version."""
    for name, _, text in _SECTION.findall(changelog):
        if name == version:
            return str(text.strip())
    sys.exit(f"CHANGELOG.md has no section `## {version}`")


def _changelog_problems(changelog: str, version: str) -> Iterator[str]:
    sections = _SECTION.findall(changelog)
    name, rest, text = sections[0] if sections else ("nothing", "", "")
    if name != version:
        yield f"CHANGELOG.md begins with `{name}`; it must begin with `## {version} - YYYY-MM-DD`"
    elif not re.fullmatch(r" - \d{4}-\d{2}-\d{2}", rest):
        yield f"the section of {version} in CHANGELOG.md has no date; write `## {version} - YYYY-MM-DD`"
    elif not text.strip():
        yield f"CHANGELOG.md says nothing of {version}"


def _tag_here(tree: Path) -> str | None:
    command = ["git", "-C", str(tree), "tag", "--points-at", "HEAD", "--list", "v*"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return None
    return found[0] if found else None


if __name__ == "__main__":
    main()
