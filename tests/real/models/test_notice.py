"""The real server where nobody configured it: known by its own answer, served, and tested."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.providers import load_provider
from isthmus.upstream.notice import recognise
from local_servers import at
from real.models.llama_server import WINDOW
from real.models.rig import MODEL, real

pytestmark = real


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, llama: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    at(tmp_path, llama_cpp=f"{llama}/v1")


@pytest.mark.parametrize("name", ["llama-cpp", "ollama", "lmstudio", "vllm", "sglang"])
def test_it_is_known_for_what_it_is_and_for_nothing_else(llama: str, name: str) -> None:
    found = asyncio.run(recognise(name, f"{llama}/v1", load_provider(name).notice, within=30.0))
    assert found == ((MODEL,) if name == "llama-cpp" else ())


def test_its_models_are_listed_with_its_own_window() -> None:
    done = CliRunner().invoke(app, ["models", "llama-cpp", "--json"])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert (row["id"], row["context_window"], row["source"]) == (f"llama-cpp/{MODEL}", WINDOW, "server")


def test_it_passes_the_test_and_answers_when_it_is_asked() -> None:
    for flags in ([], ["--ask"]):
        done = CliRunner().invoke(app, ["providers", "test", "llama-cpp", "--json", *flags])
        assert done.exit_code == 0, done.output
        (told,) = json.loads(done.stdout)
        assert (told["verdict"], told["by"], told["paid"]) == ("ready", "request" if flags else "list", False)
