"""The real program: whatever is installed, or Debian's, unpacked below the virtual environment."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from doc_pages import ROOT
from waiting import until

PLACE = ROOT / ".venv" / "redis" / "bin"


class Redis:
    def __init__(self, folder: Path) -> None:
        found = shutil.which("redis-server", path=f"{os.environ.get('PATH', '')}{os.pathsep}{PLACE}")
        if found is None:
            pytest.skip("there is no `redis-server`; `make test-redis` fetches it")
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self.port = free.getsockname()[1]
        self._command = [found, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        until(self._answers, "Redis does not answer")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as asking:
                asking.sendall(b"PING\r\n")
                return asking.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(tmp_path)
    server.start()
    yield server
    server.stop()
