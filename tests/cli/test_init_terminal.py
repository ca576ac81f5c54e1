"""The wizard on a real (pseudo-)terminal, as a person sees it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from on_terminal import Terminal

PROGRAM = "import typer; from isthmus.cli.init_command import init; typer.run(init)"


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    variables = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120"}
    variables["DEEPSEEK_API_KEY"] = "sk-from-the-environment"
    opened = Terminal(PROGRAM, folder=tmp_path, environment=variables)
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
    terminal.expect("Test the keys now? It is free of charge")
    terminal.type("n")
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
