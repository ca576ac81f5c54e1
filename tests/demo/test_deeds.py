from __future__ import annotations

import pytest

from isthmus.demo.deeds import NewFile, any_command, any_file, find_command, find_file


@pytest.mark.parametrize(
    ("text", "path", "content"),
    [
        ("create hello.txt with hello world", "hello.txt", "hello world"),
        ('Create a file called "my notes" that says "hi".', "my notes", "hi"),
        ("put 'hi there' into a/b.txt", "a/b.txt", "hi there"),
        ("write a.py with:\n```python\nprint(1)\n```", "a.py", "print(1)"),
        ("make an empty file named a.txt", "a.txt", "Hello from the demo model."),
    ],
)
def test_a_file_is_understood(text: str, path: str, content: str) -> None:
    assert find_file(text) == NewFile(path, content)


@pytest.mark.parametrize("text", ["Explain hello.txt", "add type hints to app.py", "create something"])
def test_other_texts_ask_for_no_file(text: str) -> None:
    assert find_file(text) is None


def test_a_file_is_a_patch_its_lines_or_a_command() -> None:
    file = NewFile("a b.txt", "one\ntwo")
    assert file.patch() == "*** Begin Patch\n*** Add File: a b.txt\n+one\n+two\n*** End Patch\n"
    assert file.diff() == "+one\n+two\n"
    assert file.command() == "printf '%s\\n' 'one\ntwo' > 'a b.txt'"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("run `ls -la` here", "ls -la"),
        ("Please run the shell command pytest -q.", "pytest -q"),
        ("execute make", "make"),
        ("good day", None),
    ],
)
def test_a_command_is_understood(text: str, command: str | None) -> None:
    assert find_command(text) == command


def test_there_is_always_something_harmless_to_do() -> None:
    assert any_file("look at b.md").path == "b.md"
    assert any_file("").path == "hello.txt"
    assert any_command("") == "echo hello"
