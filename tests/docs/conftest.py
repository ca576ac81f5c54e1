"""One gateway for all pages: `isthmus serve` as a process, the way `make run` starts it, on a free port."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from doc_pages import ROOT, Gateway, environment


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running_gateway(tmp_path_factory.mktemp("newcomer")) as gateway:
        yield gateway


@pytest.fixture
def own_gateway(tmp_path: Path) -> Iterator[Gateway]:
    """For a page that shows what was asked before: nobody else may have asked anything."""
    with running_gateway(tmp_path) as gateway:
        yield gateway


@contextmanager
def running_gateway(home: Path) -> Iterator[Gateway]:
    command = ["isthmus", "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, env=environment(home), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines: list[str] = []
            for line in process.stderr:
                lines.append(line)
                if "the built-in demo model answers" in line:
                    break
            else:
                raise RuntimeError(f"the gateway did not start:\n{''.join(lines)}")
            # Somebody must go on reading: a full pipe would stop the server.
            reader = threading.Thread(target=process.stderr.read, daemon=True)
            reader.start()
            yield Gateway(lines[0].split()[-1], home, "".join(lines))
        finally:
            process.terminate()
            process.wait(60)
        reader.join(60)
