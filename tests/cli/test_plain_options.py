"""Plain words are read as typer reads them; all others are left to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command
from typer.testing import CliRunner

from isthmus.cli.plain_options import Option, for_typer, read_plainly, taking
from isthmus.cli.serve_command import OPTIONS

TABLE = {
    "file": Option(Path, "A file.", "FILE"),
    "log_level": Option(str, "How much."),
    "port": Option(int, "Where.", "N"),
    "strict": Option(bool, "No less."),
}


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ([], {}),
        (["--file", "a.toml", "--log-level=debug"], {"file": Path("a.toml"), "log_level": "debug"}),
        (["--port", "9000"], {"port": 9000}),
        (["--port=0"], {"port": 0}),
        (["--strict"], {"strict": True}),
        (["--no-strict"], {"strict": False}),
        (["--strict", "--no-strict", "--port", "1", "--port", "2"], {"strict": False, "port": 2}),
        (["--log-level", "a=b"], {"log_level": "a=b"}),
    ],
)
def test_plain_words(words: list[str], read: dict[str, Any]) -> None:
    assert read_plainly(TABLE, words) == read


@pytest.mark.parametrize(
    "words",
    [
        ["--help"], ["-p", "1"], ["word"], ["--prot", "1"], ["--port"], ["--port", "x"], ["--port", "-1"], ["--port="],
        ["--port", "٣"], ["--strict=yes"], ["--log_level", "debug"], ["--log-level", "--strict"], ["--no-port", "1"],
        ["--", "--port", "1"], ["--"], [""],
    ],
)  # fmt: skip
def test_words_that_are_not_plain(words: list[str]) -> None:
    assert read_plainly(TABLE, words) is None


WORDS = st.sampled_from(
    [
        *(f"--{name.replace('_', '-')}" for name in OPTIONS),
        "--no-strict",
        "--port=1",
        "--host=a=b",
        "--model=",
        "--help",
    ]
) | st.sampled_from(["a", "1", "007", "-1", "--", "a b", "", "é"])


@given(words=st.lists(WORDS, max_size=5))
def test_whoever_reads_plain_words_reads_what_typer_reads(words: list[str]) -> None:
    plain = read_plainly(OPTIONS, words)
    if plain is None:
        return
    assert by_typer(words) == {**dict.fromkeys(OPTIONS), **plain}


def by_typer(words: list[str]) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    @taking(OPTIONS)
    def serve(**options: Any) -> None:
        seen.update(options)

    app = typer.Typer()
    app.command()(for_typer(serve))
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    return seen


def test_typer_shows_what_the_table_says() -> None:
    @taking(TABLE, "thing --port 1")
    def thing(**options: Any) -> None:
        """Do it."""

    app = typer.Typer()
    app.command()(for_typer(thing))
    command = get_command(app)
    shown = {each.name: each for each in command.params if each.name in TABLE}
    assert list(shown) == list(TABLE)
    assert (shown["port"].help, shown["port"].metavar, shown["port"].opts) == ("Where.", "N", ["--port"])
    assert shown["strict"].secondary_opts == ["--no-strict"]
    assert command.help == "Do it."
    assert command.callback.examples == ("thing --port 1",)


def test_a_function_without_a_table_is_left_as_it_is() -> None:
    def other(name: str) -> None: ...

    assert for_typer(other) is other
