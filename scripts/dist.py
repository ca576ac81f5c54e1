"""`make dist`: the source archive and the wheel, the same bytes whoever builds them, wherever and whenever.

In: this tree. Out: two files in `dist/`, and their digests on stdout. Only what git knows gets in: a key, a database
or a note that lies about in the folder never does. The wheel is built from the source archive, as whoever has only that
will build it. Times inside are those of the commit (`SOURCE_DATE_EPOCH` names another); what builds is pinned in
requirements.lock.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the two files go")
    for made in build(ROOT, parser.parse_args().out.resolve()):
        print(f"{hashlib.sha256(made.read_bytes()).hexdigest()}  {made.name}")


def build(tree: Path, out: Path) -> tuple[Path, Path]:
    """The source archive and the wheel of a tree."""
    environ = {**os.environ, "SOURCE_DATE_EPOCH": _moment(tree)}
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="isthmus-dist-") as made:
        folder = Path(made)
        archive = _hatch("sdist", _known_files(tree, folder / "tree"), folder / "sdist", environ)
        wheel = _hatch("wheel", unpack(archive, folder / "unpacked"), folder / "wheel", environ)
        return Path(shutil.copy(archive, out)), Path(shutil.copy(wheel, out))


def unpack(archive: Path, to: Path) -> Path:
    """The one folder in a source archive. Python before 3.11.4 (Debian 12 has 3.11.2) takes no `filter`."""
    with tarfile.open(archive) as opened:
        if hasattr(tarfile, "data_filter"):
            opened.extractall(to, filter="data")
        else:
            opened.extractall(to)  # an archive of our own making
    (unpacked,) = to.iterdir()
    return unpacked


def _moment(tree: Path) -> str:
    """When it was committed; where there is no git, the time that the source archive gives to all its files."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    if (tree / ".git").exists():
        return _git(tree, "log", "-1", "--format=%ct").strip()
    return str(int((tree / "PKG-INFO").stat().st_mtime))


def _known_files(tree: Path, to: Path) -> Path:
    """A copy of what git knows, as it stands there now. Without git, the tree is what somebody else has packed."""
    if not (tree / ".git").exists():
        return tree
    for name in _git(tree, "ls-files", "-z").split("\0"):
        if name and (tree / name).exists():  # one that is being taken away is in the index until the commit
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, to / name)
    return to


def _git(tree: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(tree), *arguments], check=True, capture_output=True, text=True).stdout


def _hatch(target: str, tree: Path, out: Path, environ: dict[str, str]) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(out)]
    ran = subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)
    if ran.returncode:
        sys.exit(f"the {target} cannot be built:\n{ran.stdout}{ran.stderr}")
    (made,) = out.iterdir()
    return made


if __name__ == "__main__":
    main()
