"""The `isthmus` command before any of it is loaded: who reads what is typed, and how a start fails."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli import commands, serve_command
from isthmus.cli.main import main
from isthmus.errors import ConfigError

Captured = pytest.CaptureFixture[str]
Type = Callable[..., None]


@pytest.fixture(autouse=True)
def garbage_is_looked_for_again() -> Iterator[None]:
    yield
    gc.enable()


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Type:
    def typed(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["isthmus", *words])
        main()

    return typed


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The options of each gateway that is started; all words but plain ones are refused."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(serve_command, "serve", lambda **options: seen.append(options))
    monkeypatch.setattr(commands, "app", lambda: pytest.fail("these words are plain"))
    return seen


def test_without_a_word_a_gateway_is_started(typed: Type, started: list[dict[str, Any]]) -> None:
    typed()
    typed("serve")
    assert started == [{}, {}]


def test_options_in_plain_words_reach_the_gateway(typed: Type, started: list[dict[str, Any]]) -> None:
    typed("serve", "--config", "here.toml", "--port=9000", "--no-strict")
    assert started == [{"config": Path("here.toml"), "port": 9000, "strict": False}]


@pytest.mark.parametrize(
    "words", [["--version"], ["doctor"], ["serve", "--help"], ["serve", "--prot", "1"], ["serve", "--port", "x"]]
)
def test_everything_else_is_for_the_commands(words: list[str], typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(serve_command, "serve", lambda **options: pytest.fail("nothing is started"))
    monkeypatch.setattr(commands, "app", lambda: asked.append(gc.isenabled()))
    typed(*words)
    assert asked == [True]


def test_a_shell_that_completes_a_line_starts_no_gateway(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(serve_command, "serve", lambda **options: pytest.fail("nothing is started"))
    monkeypatch.setattr(commands, "app", lambda: asked.append(True))
    monkeypatch.setenv("_ISTHMUS_COMPLETE", "complete_bash")
    typed()
    assert asked == [True]


def test_an_error_on_purpose_is_one_line_and_exit_code_one(
    typed: Type, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**options: Any) -> None:
        raise ConfigError("fix `this`")

    monkeypatch.setattr(serve_command, "serve", fail)
    with pytest.raises(SystemExit) as left:
        typed("serve")
    assert left.value.code == 1
    assert capsys.readouterr() == ("", "error: fix `this`\n")


def test_an_interrupted_start_leaves_without_a_traceback(typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(**options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(serve_command, "serve", interrupt)
    with pytest.raises(SystemExit) as left:
        typed("serve")
    assert left.value.code == 130


def test_a_start_loads_nothing_that_reads_or_shows_other_commands(tmp_path: Path) -> None:
    """Nor is garbage looked for while it loads, and it is from then on."""
    code = """
import gc, os, sys
import isthmus.server.serve

async def serve(config, *, started, **options):
    before = gc.isenabled()
    started("http://127.0.0.1:1", None)
    print(before, gc.isenabled(), *(name for name in ("typer", "rich", "pydantic", "tomlkit") if name in sys.modules))
    sys.stdout.flush()
    os._exit(0)

isthmus.server.serve.serve = serve
from isthmus.cli.main import main
main()
"""
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    done = subprocess.run(
        [sys.executable, "-c", code, "serve", "--store", "memory:", "--port", "0"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=kept,
        check=True,
    )
    assert done.stdout == "False True\n"
