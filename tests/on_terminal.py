"""A program on a real (pseudo-)terminal: wait for a text on the screen, type an answer, press ^C."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are a thing of POSIX")

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def _take_terminal(child_side: int) -> None:
    # Who starts the tests in the background has them ignore ^C, and that is inherited.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.login_tty(child_side)


class Terminal:
    def __init__(
        self, program: str, arguments: Sequence[str] = (), *, folder: Path, environment: Mapping[str, str]
    ) -> None:
        """`program` is Python source; it gets a controlling terminal, so that ^C is a signal."""
        self.screen = ""
        self._seen = 0
        self._side, child_side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            preexec_fn=lambda: _take_terminal(child_side),
            pass_fds=[child_side],
            cwd=folder,
            env=dict(environment),
        )
        os.close(child_side)

    def expect(self, text: str, within: float = 60.0) -> None:
        deadline = time.monotonic() + within
        while text not in self.screen[self._seen :]:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} did not appear:\n{self.screen}")
        self._seen = self.screen.index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        os.write(self._side, f"{text}\n".encode())

    def interrupt(self, text: str) -> None:
        """Press ^C until it is heard: one that comes just before `input()` begins to read waits for the next key."""
        for _ in range(30):
            os.write(self._side, b"\x03")
            try:
                return self.expect(text, within=1.0)
            except AssertionError:
                continue
        raise AssertionError(f"^C was not heard:\n{self.screen}")

    def end(self) -> int:
        while self._read(60.0):
            pass
        return self.process.wait(60)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._side)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._side], [], [], max(seconds, 0))
        if not ready:
            return False
        try:
            data = os.read(self._side, 65536)
        except OSError:  # Linux says so when the program has closed its side
            return False
        self.screen += _ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(data)
