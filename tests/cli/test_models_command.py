"""`isthmus models`, as a shell sees it: from the configuration, from this machine, and from a gateway that runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from isthmus.cli.commands import app
from isthmus.testing import ScriptedUpstream
from local_servers import at, ollama
from serving import running_gateway_process

LONG = "a-house-of-many-models/a-model-with-a-name-that-fits-into-no-column-of-any-terminal-there-is-instruct-v12"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    at(tmp_path)


def run(*arguments: str, columns: int = 140, **environ: str) -> Result:
    return CliRunner().invoke(app, ["models", *arguments], env={"COLUMNS": str(columns), **environ})


def listed(*arguments: str, **environ: str) -> dict[str, dict[str, Any]]:
    done = run(*arguments, "--json", **environ)
    assert done.exit_code == 0, done.output
    return {row["id"]: row for row in json.loads(done.stdout)}


@pytest.mark.parametrize("columns", [80, 140])
def test_every_model_fits_the_width_however_long_its_name(columns: int) -> None:
    Path("isthmus.toml").write_text(f"[models]\ndefault = 'openrouter/{LONG}'\n[providers.openrouter]\napi_key = 'k'\n")
    done = run(columns=columns)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.splitlines())) <= columns
    assert "the default" in done.stdout
    assert LONG in listed()[f"openrouter/{LONG}"]["id"]
    assert "\x1b[" not in done.stdout


def test_window_output_price_and_who_says_each() -> None:
    row = listed("deepseek", DEEPSEEK_API_KEY="sk-never-shown")["deepseek/deepseek-v4-pro"]
    assert (row["context_window"], row["max_output_tokens"]) == (1_000_000, 393_216)
    assert row["cost"]["input"] < row["cost"]["output"]
    assert row["origins"]["window"].startswith("models.dev")
    assert row["origins"]["output"].startswith("deepseek.toml")
    assert row["note"] == "the default"
    shown = run("deepseek", DEEPSEEK_API_KEY="sk-never-shown")
    assert "file, snapshot" in shown.stdout
    assert "sk-never-shown" not in shown.output


def test_a_word_chooses_a_provider_or_a_name() -> None:
    keys = {"DEEPSEEK_API_KEY": "a", "ZHIPU_API_KEY": "b"}
    assert {row["provider"] for row in listed("zhipu", **keys).values()} == {"zhipu"}
    assert all("flash" in id for id in listed("FLASH", **keys))
    missing = run("nothing-like-it", **keys)
    assert missing.exit_code == 1
    assert "no model has `nothing-like-it` in its name" in missing.stderr


def test_aliases_are_names_too() -> None:
    Path("isthmus.toml").write_text(
        "[models]\ndefault = 'demo/demo'\n[models.aliases]\nquick = 'demo/demo'\n'*' = 'demo/demo'\n[providers.demo]\n"
    )
    rows = listed()
    assert rows["quick"]["note"] == "stands for `demo/demo`"
    assert "*" not in rows


def test_a_server_of_this_machine_says_it_itself(tmp_path: Path) -> None:
    with ScriptedUpstream.running(routes=ollama("qwen3:8b")) as upstream:
        at(tmp_path, ollama=upstream.base_url)
        row = listed("ollama")["ollama/qwen3:8b"]
    assert (row["source"], row["context_window"]) == ("server", 40960)
    assert row["origins"]["window"].startswith("server")


def test_a_gateway_that_runs_is_asked_with_a_key(tmp_path: Path) -> None:
    text = "[store]\nurl = 'memory:'\n[server]\napi_keys = ['guest-key-1234']\n[providers.deepseek]\napi_key = 'k'\n"
    with running_gateway_process(text, tmp_path) as gateway:
        rows = listed("--gateway", gateway.url, "--key", "guest-key-1234")
        by_variable = listed("--gateway", gateway.url, ISTHMUS_API_KEY="guest-key-1234")
        refused = run("--gateway", gateway.url)
    assert rows == by_variable
    assert rows["deepseek/deepseek-v4-pro"]["context_window"] == 1_000_000
    assert rows["deepseek/deepseek-v4-pro"]["cost"]["input"] == 1.32
    assert refused.exit_code == 1
    assert "key" in refused.stderr
    gone = run("--gateway", "http://127.0.0.1:1")
    assert gone.exit_code == 1
    assert "cannot be reached" in gone.stderr
