"""`make dist`: what is inside the two files, and that everybody who builds them gets the same bytes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from doc_pages import ROOT
from isthmus import __version__
from scripted import load_script

BASE = f"isthmus-{__version__}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


def build(tree: Path, out: Path, **environ: str) -> tuple[Path, Path]:
    """The source archive and the wheel, as `make dist` builds them in a tree."""
    command = [sys.executable, str(tree / "scripts" / "dist.py"), "--out", str(out)]
    ran = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return out / f"{BASE}.tar.gz", out / f"{BASE}-py3-none-any.whl"


def known() -> set[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("there is no git to say which files are the project's")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name for name in listed.split("\0") if name and (ROOT / name).exists()}


def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return set(opened.namelist())


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        return message_from_bytes(opened.read(f"{BASE}.dist-info/METADATA"))


def test_the_wheel_has_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    snapshot = "src/isthmus/providers/data/snapshot"
    licences = {"LICENSE", f"{snapshot}/LICENSE.models-dev", f"{snapshot}/LICENSE.genai-prices"}
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", *(f"licenses/{name}" for name in licences)}
    package = {name.removeprefix("src/") for name in known() if name.startswith("src/")}
    assert wheel_names(built[1]) == package | {f"{BASE}.dist-info/{name}" for name in about}


def test_what_the_gateway_needs_at_run_time_is_in_the_wheel(built: tuple[Path, Path]) -> None:
    names = wheel_names(built[1])
    assert "isthmus/py.typed" in names
    for folder, ending in (
        ("providers/data", ".toml"),
        ("providers/data/snapshot", ".jsonl"),
        ("server/ui/templates", ".html"),
        ("server/ui/static", ".js"),
        ("server/ui/static", ".css"),
    ):
        assert any(re.fullmatch(rf"isthmus/{folder}/[^/]+{re.escape(ending)}", name) for name in names), folder


def test_the_source_archive_has_every_file_that_git_knows(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as opened:
        names = {member.name.removeprefix(f"{BASE}/") for member in opened.getmembers()}
    assert names == known() | {"PKG-INFO"}


def test_whoever_builds_it_elsewhere_and_later_gets_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    """From the source archive, in another folder, with other permissions and times, among files of somebody's own."""
    mask = os.umask(0o077)
    try:
        tree = load_script("dist").unpack(built[0], tmp_path / "elsewhere")
        for path in tree.rglob("*"):
            os.utime(path, (2_000_000_000, 2_000_000_000))
        for command in ("init -q", "add --all"):
            subprocess.run(["git", *command.split()], cwd=tree, check=True)
        for name in ("secret.env", "notes.txt", "src/isthmus/mine.py", "src/isthmus/server/ui/static/mine.js"):
            (tree / name).write_text("OPENAI_API_KEY=sk-mine")
        again = build(tree, tmp_path / "again", TZ="Asia/Tokyo", LC_ALL="C", SOURCE_DATE_EPOCH=str(moment(built[0])))
    finally:
        os.umask(mask)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_it_is_built_by_a_python_whose_archives_take_no_filter(
    built: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3.11.0 to 3.11.3: the Python of Debian 12."""
    unpack = tarfile.TarFile.extractall

    def as_it_was(self: tarfile.TarFile, path: Path) -> None:
        unpack(self, path)

    monkeypatch.setattr(tarfile.TarFile, "extractall", as_it_was)
    monkeypatch.delattr(tarfile, "data_filter")
    assert (load_script("dist").unpack(built[0], tmp_path / "old") / "pyproject.toml").exists()


def moment(archive: Path) -> int:
    """The one time that all files in it have."""
    with tarfile.open(archive) as opened:
        (found,) = {member.mtime for member in opened.getmembers()}
        assert {(member.uid, member.uname) for member in opened.getmembers()} == {(0, "")}
    return int(found)


def test_its_time_is_that_of_the_commit(built: tuple[Path, Path]) -> None:
    told = time.gmtime(moment(built[0]) // 2 * 2)[:6]  # a zip file counts in pairs of seconds
    with zipfile.ZipFile(built[1]) as zipped:
        assert {entry.date_time for entry in zipped.infolist()} == {told}
    if (ROOT / ".git").exists() and "SOURCE_DATE_EPOCH" not in os.environ:
        committed = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True)
        assert moment(built[0]) == int(committed.stdout)


def test_without_git_its_time_is_that_of_the_source_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    (tmp_path / "PKG-INFO").touch()
    os.utime(tmp_path / "PKG-INFO", (1_700_000_000, 1_700_000_000))
    assert load_script("dist")._moment(tmp_path) == "1700000000"


def test_the_image_installs_the_same_package(built: tuple[Path, Path], tmp_path: Path) -> None:
    """From what the Dockerfile copies, and nothing else; docker itself is not asked."""
    dockerfile = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
    for copied, to in re.findall(r"^COPY (?!--)(.+) (\./\S*)$", dockerfile, re.MULTILINE):
        for source in (ROOT / each for each in copied.split()):
            if source.is_dir():
                shutil.copytree(source, tmp_path / "build" / to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (tmp_path / "build" / to).mkdir(parents=True, exist_ok=True)
                shutil.copy(source, tmp_path / "build" / to)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "made")]
    subprocess.run(command, cwd=tmp_path / "build", check=True, capture_output=True)
    (made,) = (tmp_path / "made").iterdir()
    assert wheel_names(made) == wheel_names(built[1])
    assert metadata(made).items() == metadata(built[1]).items()


def test_the_metadata_says_who_it_is_for(built: tuple[Path, Path]) -> None:
    told = metadata(built[1])
    assert (told["Name"], told["Version"], told["Requires-Python"]) == ("isthmus", __version__, ">=3.11")
    assert told["License-Expression"] == "Apache-2.0"
    kinds = told.get_all("Classifier", [])
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13, 14)} <= set(kinds)
    assert "Typing :: Typed" in kinds
    places = dict(each.split(", ", 1) for each in told.get_all("Project-URL", []))
    assert set(places) == {"Repository", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(places["Repository"]) for url in places.values())
    readme = str(told.get_payload())
    assert told["Description-Content-Type"] == "text/markdown"
    assert f"{places['Repository']}/blob/v{__version__}/docs/getting-started.md" in readme
    assert "](docs/" not in readme


def test_all_means_every_extra(built: tuple[Path, Path]) -> None:
    needed: dict[str, set[str]] = {}
    for name, extra in _extras(metadata(built[1])):
        needed.setdefault(extra, set()).add(name)
    assert set(needed) == set(metadata(built[1]).get_all("Provides-Extra", []))
    everything = needed.pop("all")
    assert set().union(*needed.values()) == everything


def _extras(told: Message) -> Iterator[tuple[str, str]]:
    for each in told.get_all("Requires-Dist", []):
        found = re.fullmatch(r"(.*?); .*\bextra == '(\w+)'", each)
        if found:
            yield found[1], found[2]
