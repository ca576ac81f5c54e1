"""All commands as one: what is mounted, how it fails, what it does without a command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isthmus import __version__
from isthmus.cli import serve_command
from isthmus.cli.commands import app
from isthmus.errors import ConfigError, RequestRefused, UpstreamFailed


def test_version() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.output == f"isthmus {__version__}\n"


def test_every_command_is_mounted() -> None:
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "100"}).output
    for name in ("serve", "init", "explain", "providers", "config"):
        assert name in shown
        assert CliRunner().invoke(app, [name, "--help"]).exit_code == 0


def test_without_a_command_the_gateway_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[bool] = []
    monkeypatch.setattr(serve_command, "serve", lambda: started.append(True))
    assert CliRunner().invoke(app, []).exit_code == 0
    assert started == [True]


@pytest.mark.parametrize("error", [ConfigError("fix `this`"), RequestRefused("fix `this`")], ids=["config", "request"])
def test_an_error_on_purpose_is_one_line_and_exit_code_one(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(serve_command, "serve", fail)
    done = CliRunner().invoke(app, [])
    assert done.exit_code == 1
    assert done.stderr == "error: fix `this`\n"
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("message", "code", "step"),
    [
        ("provider `p` refused", "upstream_unauthorized", "→ isthmus providers test p tries it, and says what to do"),
        ("provider `p` cannot be", "upstream_unreachable", "→ isthmus providers test p tries it, and says what to do"),
        ("provider `p`: no such model", "model_not_found", "→ isthmus models p lists what it has"),
        ("the gateway cannot be", "upstream_unreachable", "→ is it running there (isthmus serve), and is the address"),
    ],
)
def test_what_a_provider_or_a_gateway_could_not_do_comes_with_the_next_step(
    message: str, code: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise UpstreamFailed(message, code=code, metadata={"provider": "p"})

    monkeypatch.setattr(serve_command, "serve", fail)
    done = CliRunner().invoke(app, [])
    first, second = done.stderr.splitlines()
    assert first == f"error: {message}"
    assert second.startswith(step)


def test_a_slip_in_a_commands_name_is_told_what_was_meant() -> None:
    done = CliRunner().invoke(app, ["sevre"])
    assert done.exit_code == 2
    assert "No such command 'sevre'. Did you mean 'serve'?" in done.stderr
    assert "Did you mean" not in CliRunner().invoke(app, ["xyzzy"]).stderr


def test_any_other_error_is_ours_and_rises(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(serve_command, "serve", fail)
    assert isinstance(CliRunner().invoke(app, []).exception, ZeroDivisionError)


def test_colour_comes_with_a_terminal_and_goes_with_no_color(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")

    def on_a_terminal(**environ: str) -> str:
        master, slave = pty.openpty()
        kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color", **environ}
        code = "from isthmus.cli.main import main; main()"
        with subprocess.Popen(
            [sys.executable, "-c", code, "explain", "-", "-p", "demo"],
            stdin=subprocess.PIPE,
            stdout=slave,
            stderr=slave,
            env=kept,
            cwd=tmp_path,
        ) as process:
            os.close(slave)
            assert process.stdin is not None
            process.stdin.write(b'{"input": "hi"}')
            process.stdin.close()
            seen = b""
            while chunk := _read(master):
                seen += chunk
        os.close(master)
        assert process.returncode == 0
        return seen.decode()

    coloured = on_a_terminal()
    assert "\x1b[32m✓ supported" in coloured
    plain = on_a_terminal(NO_COLOR="1")
    assert "✓ supported" in plain
    assert "\x1b[32m" not in plain


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # the other side is closed
        return b""
