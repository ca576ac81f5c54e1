"""The full-screen Codex on a pseudo-terminal: wait for words on the screen or for a fact outside, press keys.

Codex moves the cursor over blanks in place of printing them, so words are looked for without the space between them.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_ESCAPES = re.compile(r"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_()][0-9A-B]?|\s")
_ANSWERS = {
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b[c": b"\x1b[?62;22c",
    b"\x1b[6n": b"\x1b[1;1R",
    b"\x1b]10;?": b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    b"\x1b]11;?": b"\x1b]11;rgb:0000/0000/0000\x1b\\",
}
"""What a terminal says when it is asked for its keyboard, its kind, the cursor and its colours."""
_QUESTIONS = re.compile(b"|".join(map(re.escape, _ANSWERS)))

_TITLE = re.compile(rb"\x1b\][02];([^\x07\x1b]*)$")

PATIENCE = 90.0
"""Seconds that a step may take on a busy machine."""


class FullScreen:
    def __init__(self, process: subprocess.Popen[bytes], side: int) -> None:
        self.process = process
        self.screen = ""
        self.titles: list[str] = []
        """Those that the window was given, the newest last."""
        self._side = side
        self._unended = b""

    def press(self, keys: str) -> None:
        """Press when nothing moves any more: what comes while a screen is drawn for the first time is thrown away."""
        deadline = time.monotonic() + 10  # something may be moving for good
        while self.process.poll() is None and self._read(1.0) and time.monotonic() < deadline:
            pass
        os.write(self._side, keys.encode())

    def see(self, words: str, within: float = PATIENCE) -> bool:
        """Whether the words appear from now on; what was seen before them is forgotten."""
        wanted = re.sub(r"\s", "", words)
        if not self.wait(lambda: wanted in self.screen, within):
            return False
        self.screen = self.screen[self.screen.index(wanted) + len(wanted) :]
        return True

    def wait(self, fact: Callable[[], bool], within: float = PATIENCE) -> bool:
        deadline = time.monotonic() + within
        while not fact():
            if time.monotonic() > deadline or self.process.poll() is not None:
                return fact()
            self._read()
        return True

    def insist(self, keys: str, fact: Callable[[], bool]) -> bool:
        """Press until it has worked: keys that come before the screen listens are lost."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            self.press(keys)
            if self.wait(fact, 5):
                return True
        return fact()

    def _read(self, seconds: float = 0.1) -> bool:
        ready, _, _ = select.select([self._side], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self._side, 65536)
        except OSError:  # Linux says so when the program has closed its side
            return False
        for question in _QUESTIONS.findall(data):  # in the order in which they were asked
            os.write(self._side, _ANSWERS[question])
        *told, self._unended = (self._unended + data).split(b"\x07")
        self.titles += [found[1].decode() for one in told if (found := _TITLE.search(one))]
        self.screen += _ESCAPES.sub("", data.decode("utf-8", "replace"))
        return bool(data)


@contextmanager
def full_screen(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Iterator[FullScreen]:
    side, child_side = pty.openpty()
    fcntl.ioctl(child_side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        list(command),
        stdin=child_side,
        stdout=child_side,
        stderr=child_side,
        cwd=folder,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(child_side)
    try:
        yield FullScreen(process, side)
    finally:
        process.kill()
        process.wait()
        os.close(side)
