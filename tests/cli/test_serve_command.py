"""`isthmus serve` says at its start what is odd about its configuration."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isthmus.cli.serve_command import banner, serve

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def nothing_is_served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    async def nothing(config: object, **options: object) -> None:
        return None

    root = logging.getLogger("isthmus")
    before = (root.handlers[:], root.level, root.propagate)
    monkeypatch.setattr("isthmus.server.serve.serve", nothing)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield
    root.handlers[:], root.level, root.propagate = before


def start(folder: Path, text: str = "") -> None:
    file = folder / "isthmus.toml"
    file.write_text(text)
    serve(config=file, host=None, port=None, store="memory:", model=None)


def test_a_misspelt_variable_is_told_with_a_suggestion(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ISTHMUS_SERVER_PROT", "9000")
    start(tmp_path)
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "config.warning" in line)
    assert " W config.warning at=$ISTHMUS_SERVER_PROT problem='sets no known key'" in line
    assert "did you mean `ISTHMUS_SERVER_PORT`?" in line


def test_in_json_it_is_facts(capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISTHMUS_STOER_URL", "x")
    start(tmp_path, '[log]\nformat = "json"\n')
    (line,) = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (line["event"], line["level"], line["at"]) == ("config.warning", "warning", "$ISTHMUS_STOER_URL")


def test_a_key_that_is_withheld_is_told(capsys: Captured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-env-1234567890")
    start(tmp_path, '[providers.deepseek]\nbase_url = "https://proxy.example/v1"\n')
    told = capsys.readouterr().err
    assert "the key in `$DEEPSEEK_API_KEY` is not sent there" in told
    assert "sk-env" not in told


def test_a_sound_configuration_is_told_in_silence(capsys: Captured, tmp_path: Path) -> None:
    start(tmp_path)
    assert capsys.readouterr().err == ""


def test_what_is_loaded_at_the_start_is_not_searched_for_garbage_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A full search would hold up everybody for as long as it takes to look at all of it."""
    steps: list[str] = []

    async def served(config: object, *, started: Callable[[str, object], None], **options: object) -> None:
        steps.append("served")
        started("http://[::1]:1", None)

    monkeypatch.setattr("isthmus.server.serve.serve", served)
    monkeypatch.setattr(gc, "freeze", lambda: steps.append("frozen"))
    start(tmp_path)
    assert steps == ["served", "frozen"]


@pytest.mark.parametrize(("host", "asked"), [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]"), ("10.0.0.7", "10.0.0.7")])
def test_the_line_to_try_it_can_be_typed_wherever_it_listens(host: str, asked: str) -> None:
    told = banner(f"http://{host}:8484", "demo/demo", [], "memory:")
    assert f"curl http://{asked}:8484/v1/responses" in told
    assert max(map(len, told.splitlines())) <= 80
