"""The wizard on a real (pseudo-)terminal, as a person sees it."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are a thing of POSIX")

PROGRAM = "import typer; from isthmus.cli.init_command import init; typer.run(init)"
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program on a pseudo-terminal: wait for a text on the screen, type an answer."""

    def __init__(self, home: Path, variables: dict[str, str]) -> None:
        self.screen = ""
        self._seen = 0
        self._side, child_side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            preexec_fn=lambda: os.login_tty(child_side),  # a controlling terminal, so that ^C is a signal
            pass_fds=[child_side],
            cwd=home,
            env={"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120", **variables},
        )
        os.close(child_side)

    def expect(self, text: str, within: float = 30.0) -> None:
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
        while self._read(30.0):
            pass
        return self.process.wait(30)

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
        self.screen += ESCAPES.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(data)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, {"DEEPSEEK_API_KEY": "sk-from-the-environment"})
    yield opened
    opened.close()


def test_a_person_answers_and_gets_a_private_file_with_masked_preview(terminal: Terminal, tmp_path: Path) -> None:
    terminal.expect("1, 2 or a path (1):")
    terminal.type("2")
    terminal.expect("DEEPSEEK_API_KEY is set")
    terminal.expect("Which ones?")
    terminal.type("deepseek, groq, box=http://127.0.0.1:8080/v1")
    terminal.expect("read $DEEPSEEK_API_KEY at run time, or paste it (not shown): ")
    terminal.type("")
    terminal.expect("read $GROQ_API_KEY at run time, or paste it (not shown): ")
    terminal.type("gsk-pasted-by-hand")
    terminal.expect("Enter for none, or paste it (not shown): ")
    terminal.type("")
    terminal.expect("Default model")
    terminal.type("")
    terminal.expect("every other model name")
    terminal.type("y")
    terminal.expect("Port (8484):")
    terminal.type("9001")
    terminal.expect("sqlite")
    terminal.type("memory")
    terminal.expect("<redacted>")
    terminal.expect("Write ")
    terminal.type("y")
    terminal.expect("Wrote ")
    assert terminal.end() == 0, terminal.screen
    assert "gsk-pasted-by-hand" not in terminal.screen
    assert "sk-from-the-environment" not in terminal.screen
    file = tmp_path / "isthmus.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    assert 'api_key = "${DEEPSEEK_API_KEY}"' in text
    assert 'api_key = "gsk-pasted-by-hand"' in text
    assert '[providers.box]\nuses = "openai-compatible"\nbase_url = "http://127.0.0.1:8080/v1"\n' in text
    assert "port = 9001" in text
    assert 'url = "memory:"' in text


def test_leaving_with_control_c_writes_nothing(terminal: Terminal, tmp_path: Path) -> None:
    terminal.expect("1, 2 or a path (1):")
    terminal.type("2")
    terminal.expect("Which ones?")
    terminal.interrupt("nothing was written")
    assert terminal.end() == 1
    assert not (tmp_path / "isthmus.toml").exists()
