"""What is built, installed into environments that hold nothing else, and used from a folder that has no source.

`make test-package` fetches the installers (uv, pipx, twine, zizmor) below the virtual environment. What is marked
`whole` runs in `make check-package` only: pip on every Python, the oldest versions, the source archive.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from doc_pages import ROOT
from waiting import until

PLACE: Final = ROOT / ".venv" / "package" / "bin"
SECONDS: Final = 600
WHOLE: Final = os.environ.get("PACKAGE_MATRIX") == "whole"
whole = pytest.mark.skipif(not WHOLE, reason="part of `make check-package`")
_HOUSES: Final = (
    "~/.pyenv/versions/{0}.*/bin/python{0}",
    "~/.local/share/uv/python/cpython-{0}.*/bin/python{0}",
    "/opt/hostedtoolcache/Python/{0}.*/x64/bin/python{0}",
)
_KEPT: Final = re.compile(
    r"(?i)(pip|uv)_(?!config|cache)\w+|ssl_cert_\w+|(http|https|no|all)_proxy|lang|tmpdir|systemroot"
)
"""How packages are reached from this machine; nothing else of the environment gets in."""


def tool(name: str) -> str:
    found = PLACE / name
    if not found.exists():
        pytest.skip(f"there is no `{name}`; `make test-package` fetches it")
    return str(found)


def python(minor: int) -> str:
    """A CPython 3.`minor` of this machine."""
    named = [shutil.which(f"python3.{minor}"), sys.executable if sys.version_info[1] == minor else None]
    houses = [path for house in _HOUSES for path in glob(str(Path(house.format(f"3.{minor}")).expanduser()))]
    for each in filter(None, [*named, *sorted(houses)]):
        asked = [each, "-c", "import sys, venv, ensurepip; print(sys.implementation.name, sys.version_info[1])"]
        ran = subprocess.run(asked, capture_output=True, text=True, check=False)
        if ran.stdout.split() == ["cpython", str(minor)]:
            return each
    pytest.skip(f"there is no Python 3.{minor} on this machine")


@dataclass(frozen=True, slots=True)
class Built:
    archive: Path
    wheel: Path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("dist")
    call([sys.executable, ROOT / "scripts" / "dist.py", "--out", out], out)
    return Built(*out.glob("*.tar.gz"), *out.glob("*.whl"))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Empty at first: nobody's earlier downloads or builds get in."""
    return tmp_path_factory.mktemp("cache")


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment and a home of its own, in a folder of its own."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "env" / "bin"

    def run(self, *arguments: str | Path, fails: bool = False, **environ: str) -> str:
        """What a command of the environment says, on both ways out."""
        program = [self.bin / "python", "-m", "isthmus"] if arguments[0] == "isthmus" else [self.bin / arguments[0]]
        return call([*program, *arguments[1:]], self.folder, fails=fails, **environ)

    def copy(self, folder: Path) -> Installed:
        """The same once more, to install something into: links, so that nothing is unpacked and compiled again."""
        shutil.copytree(self.folder / "env", folder / "env", symlinks=True, copy_function=_link)
        return Installed(folder)

    def config(self, text: str) -> Path:
        path = self.folder / "isthmus.toml"
        path.write_text(text)
        return path

    @contextmanager
    def serving(self, *options: str | Path, **environ: str) -> Iterator[Served]:
        """`isthmus serve` on a port of its own choice."""
        said = self.folder / "served.log"
        with said.open("wb") as log:
            command = [str(self.bin / "python"), "-m", "isthmus", "serve", "--port", "0", *map(str, options)]
            own = {**environment(self.folder), **environ}
            process = subprocess.Popen(command, cwd=self.folder, env=own, stdout=log, stderr=log)
        try:

            def address() -> str | None:
                assert process.poll() is None, said.read_text()
                found = re.search(r"listening on (http://\S+)", said.read_text())
                return found and found[1]

            yield Served(until(address, said.read_text))
        finally:
            process.terminate()
            assert process.wait(60) == 0, said.read_text()


@dataclass(frozen=True, slots=True)
class Served:
    url: str

    def get(self, path: str, accept: str = "*/*") -> str:
        return self._ask(Request(self.url + path, headers={"accept": accept}))

    def post(self, path: str, body: Any) -> Any:
        head = {"content-type": "application/json"}
        return json.loads(self._ask(Request(self.url + path, json.dumps(body).encode(), head)))

    def _ask(self, request: Request) -> str:
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=60) as answer:
                return str(answer.read().decode())
        except HTTPError as refused:
            return refused.read().decode()


def install(folder: Path, cache: Path, *wanted: str, minor: int = sys.version_info[1]) -> Installed:
    """A bare environment with what is wanted; never anything that has to be compiled."""
    call([tool("uv"), "venv", "--python", python(minor), folder / "env"], folder)
    here = Installed(folder)
    add(here, cache, *wanted)
    return here


def add(here: Installed, cache: Path, *wanted: str) -> None:
    command = [tool("uv"), "pip", "install", "--only-binary", ":all:", "--python", here.folder / "env"]
    call([*command, *wanted], here.folder, UV_CACHE_DIR=str(cache))


@pytest.fixture(scope="session")
def bare(built: Built, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Isthmus without any extra, used once, so that copies of it are compiled."""
    here = install(tmp_path_factory.mktemp("bare"), cache, str(built.wheel))
    with here.serving() as gateway:
        gateway.post("/v1/responses", {"input": "hi"})
    return here


def _link(source: str, to: str) -> None:
    os.link(source, to, follow_symlinks=False)


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    own = {"HOME": str(home), "PATH": "/usr/bin:/bin", "COLUMNS": "100", "CC": "/bin/false", "CXX": "/bin/false"}
    return {**kept, **own, "UV_PYTHON_DOWNLOADS": "never"}


def call(command: Sequence[str | Path], folder: Path, *, fails: bool = False, **environ: str) -> str:
    ran = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={**environment(folder), **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (ran.returncode != 0) is fails, f"{' '.join(map(str, command))}\n{ran.stdout}"
    return ran.stdout
