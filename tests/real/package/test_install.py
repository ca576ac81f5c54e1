"""Installed from what was built, on every Python that is promised: no compiler, no source tree, and it works."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from doc_pages import ROOT
from isthmus import __version__
from real.package.conftest import Built, Installed, call, install, python, tool, whole

pytestmark = pytest.mark.real

WATCH = """
import os, sys
if os.environ.get("READ_LOG"):
    log = os.open(os.environ["READ_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    def note(event, arguments):
        if event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str):
            os.write(log, (os.path.abspath(arguments[0]) + "\\n").encode())
    sys.addaudithook(note)
"""
"""Notes every file that Python opens, in all processes of an environment."""


@pytest.mark.parametrize("minor", [11, 12, 13, 14])
def test_it_works_on_every_python_and_reads_no_source_tree(
    minor: int, built: Built, cache: Path, tmp_path: Path
) -> None:
    here = install(tmp_path, cache, str(built.wheel), minor=minor)
    (packages,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (packages / "watch_reads.py").write_text(WATCH)
    (packages / "watch_reads.pth").write_text("import watch_reads\n")
    log = tmp_path / "read.log"
    works(here, READ_LOG=str(log))
    read = set(log.read_text().splitlines())
    assert str(packages / "isthmus" / "server" / "ui" / "templates" / "base.html") in read  # the watch sees
    assert [path for path in read if Path(path).is_relative_to(ROOT)] == []


@pytest.mark.parametrize("minor", [pytest.param(each, marks=whole) for each in (11, 12, 13, 14)])
def test_pip_installs_it_without_a_compiler(minor: int, built: Built, tmp_path: Path) -> None:
    call([python(minor), "-m", "venv", tmp_path / "env"], tmp_path)
    here = Installed(tmp_path)
    here.run("pip", "install", "--no-cache-dir", "--only-binary", ":all:", built.wheel)
    assert "No broken requirements" in here.run("pip", "check")
    works(here)


@whole
def test_pip_installs_it_from_the_source_archive(built: Built, tmp_path: Path) -> None:
    """Only we are built: hatchling and everything below us come as wheels."""
    call([sys.executable, "-m", "venv", tmp_path / "env"], tmp_path)
    here = Installed(tmp_path)
    here.run("pip", "install", "--no-cache-dir", "--only-binary", ":all:", "--no-binary", "isthmus", built.archive)
    works(here)


@whole
def test_the_oldest_versions_that_are_allowed_do(built: Built, cache: Path, tmp_path: Path) -> None:
    """Lower bounds are promises, too."""
    works(install(tmp_path, cache, "--resolution", "lowest-direct", str(built.wheel), minor=11))


def test_uvx_runs_it(built: Built, cache: Path, tmp_path: Path) -> None:
    command = [tool("uvx"), "--python", sys.executable, "--from", built.wheel, "isthmus"]
    assert "Hello!" in call([*command, "chat", "hello"], tmp_path, UV_CACHE_DIR=str(cache))
    assert f"isthmus {__version__}\n" in call([*command, "--version"], tmp_path, UV_CACHE_DIR=str(cache))


def test_pipx_runs_it(built: Built, cache: Path, tmp_path: Path) -> None:
    command = [tool("pipx"), "run", "--python", python(sys.version_info[1]), "--spec", str(built.wheel), "isthmus"]
    environ = {
        "PIPX_HOME": str(tmp_path / "pipx"),
        "UV_CACHE_DIR": str(cache),
        "PATH": f"{Path(tool('uv')).parent}:/usr/bin:/bin",
    }
    assert "Hello!" in call([*command, "chat", "hello"], tmp_path, **environ)


def test_the_page_on_pypi_renders(built: Built, tmp_path: Path) -> None:
    told = call([tool("twine"), "check", "--strict", built.wheel, built.archive], tmp_path, NO_COLOR="1")
    assert told.count("PASSED") == 2, told


def test_tests_run_from_the_source_archive(built: Built, tmp_path: Path) -> None:
    """It has every file (tests/scripts/test_dist.py); these read many of them."""
    said = run_tests(
        built, tmp_path, "tests/test_house.py", "tests/docs/test_links.py", "tests/scripts/test_release.py"
    )
    assert "failed" not in said


@whole
@pytest.mark.timeout(900)
def test_every_test_is_found_in_the_source_archive(built: Built, tmp_path: Path) -> None:
    """One that cannot be imported there would be an error."""
    counts = re.findall(r"^tests/\S+\.py: (\d+)$", run_tests(built, tmp_path, "--collect-only", "-q"), re.MULTILINE)
    assert sum(map(int, counts)) > 5_000


def run_tests(built: Built, folder: Path, *arguments: str) -> str:
    shutil.unpack_archive(built.archive, folder, filter="data")
    (tree,) = folder.glob("isthmus-*")
    own = {"PYTHONPATH": str(tree / "src"), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    return call([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", *arguments], tree, **own)


def works(here: Installed, **environ: str) -> None:
    """The first minutes of somebody who has just installed it, as every release goes through them, too."""
    trying = Path(shutil.copy(ROOT / "scripts" / "try_installed.py", here.folder))
    assert f"isthmus {__version__} works on Python 3." in here.run("python", trying, __version__, **environ)
