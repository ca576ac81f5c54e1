"""The guide of the doctor shows what the doctor says."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import codex_program
from doc_pages import ROOT, Gateway, Shown, check_output, environment, read_blocks, read_commands
from isthmus.cli.doctor.view import SHAPE
from isthmus.cli.elsewhere import IN_TROUBLE, KEY_MISSING, KEY_REFUSED, NOT_OURS, UNREACHABLE

PAGE = ROOT / "docs" / "guides" / "doctor.md"


def test_a_new_user_sees_what_the_page_shows(gateway: Gateway) -> None:
    (shown,) = read_commands(PAGE)
    check_output(shown, gateway.run_command(shown.source))


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name, so that lines end where they end on the page."""
    with tempfile.TemporaryDirectory(prefix="d") as short:
        yield Path(short)


def test_what_is_wrong_is_shown_as_the_page_shows_it(folder: Path) -> None:
    config, screen = (block for block in read_blocks(PAGE) if block.language in ("toml", "text"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = folder / "me"
    (home / "work").mkdir(parents=True)
    (home / "bin").mkdir()
    program = codex_program.install(home / "bin")
    program.write_text("#!/bin/sh\necho codex-cli 0.166.0\n")
    (home / "work" / "isthmus.toml").write_text(config.text + f"[server]\nport = {port}\n")
    path = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "PYTHONPATH": str(folder)}
    (folder / "codex_cli_bin.py").write_text("raise ImportError\n")  # as if it were not installed

    def isthmus(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "isthmus", *arguments],
            cwd=home / "work",
            env={**environment(home), **path, **variables},
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )

    done = isthmus("codex", "setup", "--model", "demo/demo", "--yes")
    assert done.returncode == 0, done.stderr
    command, _, output = screen.text.partition("\n")
    assert command == "$ ISTHMUS_PROT=8485 isthmus doctor"
    looked = isthmus("doctor", ISTHMUS_PROT="8485")
    assert looked.returncode == 1, looked.stdout + looked.stderr
    check_output(Shown(screen, command, output), looked.stdout)


def test_the_documented_shape_and_codes_are_the_real_ones() -> None:
    text = PAGE.read_text()
    assert f"| `shape` | `{SHAPE}` |" in text
    for code in (UNREACHABLE, KEY_MISSING, KEY_REFUSED, NOT_OURS, IN_TROUBLE):
        assert re.search(rf"`{code}`", text)
