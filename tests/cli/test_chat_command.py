"""`isthmus chat`: piped, and on a real (pseudo-)terminal as a person sees it. The demo model answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from isthmus.cli.chat_command import load_tool
from isthmus.errors import ConfigError
from on_terminal import Terminal

PROGRAM = "import typer; from isthmus.cli.chat_command import chat; typer.run(chat)"
TOOLS = '''
from isthmus import tool

@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"

@tool(needs_approval=True)
def delete_file(path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_tools.py").write_text(TOOLS)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {"HOME": str(folder), "PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "120"}


def pipe(folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        input=given,
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder),
        timeout=200,
    )


def test_one_question_is_answered_and_stdout_holds_nothing_but_the_answer(folder: Path) -> None:
    done = pipe(folder, "-t", "my_tools:get_weather", "What is the weather in Oslo?")
    assert done.returncode == 0
    assert done.stdout == "Done. get_weather answered: Sunny in Oslo\n"
    assert '⚙ get_weather {"city":"Oslo"}' in done.stderr
    assert "✓ get_weather Sunny in Oslo" in done.stderr
    assert "2 turns" in done.stderr
    assert "$0.0000" in done.stderr


def test_a_question_can_be_piped_in(folder: Path) -> None:
    assert "84" in pipe(folder, given="what is 12*7?").stdout


def test_without_a_terminal_nothing_is_approved_unless_told_so(folder: Path) -> None:
    question = '[[demo: call delete_file {"path": "/x"}]] go'
    assert "denied" in pipe(folder, "-t", "my_tools:delete_file", question).stderr
    assert "deleted /x" in pipe(folder, "-y", "-t", "my_tools:delete_file", question).stderr


@pytest.mark.parametrize("name", ["my_tools", "my_tools:", "nowhere:x", "json:nothing"])
def test_a_tool_that_cannot_be_loaded_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"`--tools {name}`") + ".*; write `module:function`"):
        load_tool(name)


def test_a_conversation_on_a_terminal(folder: Path) -> None:
    terminal = Terminal(
        PROGRAM,
        ["-t", "my_tools:get_weather", "-t", "my_tools:delete_file"],
        folder=folder,
        environment=environment(folder),
    )
    try:
        terminal.expect("demo/demo   tools: get_weather, delete_file")
        terminal.expect("› ")
        terminal.type("What is the weather in Oslo?")
        terminal.expect("answered: Sunny in Oslo")
        terminal.expect("2 turns")
        terminal.expect("› ")
        terminal.type('[[demo: call delete_file {"path": "/x"}]] go')
        terminal.expect("[y/N]")
        terminal.type("y")
        terminal.expect("deleted /x")
        terminal.expect("› ")
        terminal.type("[[demo: pace 5]] say alpha beta gamma delta epsilon zeta eta theta iota kappa 9 times")
        terminal.expect("\n")
        terminal.expect("alpha")
        terminal.interrupt("cancelled")
        terminal.expect("› ")
        terminal.type("[[demo: error 400]] hello")
        terminal.expect("error:")
        terminal.expect("› ")
        terminal.type("/help")
        terminal.expect("/reset")
        terminal.expect("› ")
        terminal.type("what is 12*7?")
        terminal.expect("84")
        terminal.expect("› ")
        terminal.type("/quit")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()


def test_an_answer_is_broken_between_words_on_a_terminal_and_whole_in_a_pipe(folder: Path) -> None:
    asked = "[[demo: pace 1000]] lorem 60"
    whole = pipe(folder, asked).stdout
    assert max(map(len, whole.splitlines())) > 100
    terminal = Terminal(PROGRAM, [asked], folder=folder, environment={**environment(folder), "COLUMNS": "40"})
    try:
        assert terminal.end() == 0
    finally:
        terminal.close()
    lines = [line for line in terminal.screen.splitlines() if " in, " not in line]
    assert " ".join(lines).split() == whole.split(), "every word is there, and none is broken"
    assert 30 < max(map(len, lines)) <= 40
