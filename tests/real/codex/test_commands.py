"""The two commands: what `isthmus codex setup` writes works with the real Codex, and `run` needs no setup at all."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.changes import carry_out
from isthmus.cli.codex_keys import CATALOGUE, Settings
from isthmus.cli.codex_setup import plan_setup, plan_undo
from isthmus.providers.catalog import known_models
from isthmus.providers.codex_catalog import codex_catalogue
from isthmus.testing import chat
from real.codex.rig import BINARY, DEEPSEEK, environment, real, rig
from serving import running_gateway_server
from socketing import watch_frames
from waiting import until

pytestmark = real

QUIET = ["analytics.enabled", "feedback.enabled", "features.plugins", "features.apps", "features.remote_plugin"]
FLAGS = [part for key in (*QUIET, "features.plugin_sharing") for part in ("-c", f"{key}=false")]


def codex(home: Path, work: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BINARY), *arguments],
        cwd=work,
        env={**environment(home), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )


def isthmus(folder: Path, *arguments: str, typed: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "CODEX_HOME": str(folder / "codex"), "NO_PROXY": "127.0.0.1"}
    (folder / "work").mkdir(exist_ok=True)
    (folder / "codex").mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", "from isthmus.cli.main import main; main()", *arguments],
        cwd=folder / "work",
        env={"PATH": os.environ["PATH"], **own, **variables},
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
    )


def read_models(home: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    shown = codex(home, home, *arguments, "debug", "models")
    assert shown.returncode == 0, shown.stderr
    return {entry["slug"]: entry for entry in json.loads(shown.stdout)["models"]}


def test_codex_reads_the_catalogue_of_every_model_we_know(tmp_path: Path) -> None:
    models = {model.name: model for model in known_models()}
    file = tmp_path / "models.json"
    file.write_text(json.dumps(codex_catalogue(models)))
    seen = read_models(tmp_path, "-c", f'model_catalog_json="{file}"')
    assert list(seen) == list(models)
    for slug, model in models.items():
        assert seen[slug]["context_window"] == (model.context or 128_000)
        assert [level["effort"] for level in seen[slug]["supported_reasoning_levels"]] == list(model.efforts)
        assert seen[slug]["apply_patch_tool_type"] == "freeform"
        assert seen[slug]["use_responses_lite"] is False


@pytest.mark.parametrize("websockets", [False, True], ids=["http", "websocket"])
@pytest.mark.parametrize("profile", [None, "other"])
def test_what_setup_writes_makes_codex_use_the_gateway(
    tmp_path: Path, profile: str | None, websockets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = watch_frames(monkeypatch)
    with rig(tmp_path, chat("Hi through the gateway.")) as it:
        own = it.home / "config.toml"
        own.write_text('# mine\nmodel = "gpt-5.5"\napproval_policy = "never"\n')
        models = {model.name: model for model in known_models() if model.name == DEEPSEEK}
        settings = Settings(f"{it.gateway.url}/v1", DEEPSEEK, str(it.home / CATALOGUE), websockets=websockets)
        carry_out(plan_setup(it.home, settings, codex_catalogue(models), profile))
        chosen = ("-p", profile) if profile else ()
        said = codex(it.home, it.work, *FLAGS, "exec", *chosen, "--skip-git-repo-check", "--json", "hi")
        assert "Hi through the gateway." in said.stdout, said.stderr
        assert "metadata" not in said.stdout  # Codex warns when it does not know a model
        assert it.bodies[0]["model"] == "deepseek-v4-pro"
        assert [frame.get("generate") for frame in frames] == ([False, None] if websockets else [])
        carry_out(plan_undo(it.home, profile))
        assert own.read_text() == '# mine\nmodel = "gpt-5.5"\napproval_policy = "never"\n'


def test_codex_asks_for_models_itself_where_its_key_comes_from_a_command(tmp_path: Path) -> None:
    with rig(tmp_path, chat("Hi.")) as it:
        auth = '[model_providers.gateway.auth]\ncommand = "echo"\nargs = ["key"]'
        outcome = it.exec("hi", slug=DEEPSEEK, provider="", tables=auth).worked()
        cached = json.loads((it.home / "models_cache.json").read_text())["models"]
    assert outcome.items("error") == []  # it knows the model
    assert next(entry for entry in cached if entry["slug"] == DEEPSEEK)["context_window"] == 1_000_000
    assert it.bodies[0]["messages"][0]["content"].startswith("You are a coding agent")


def test_both_shapes_of_the_model_list_name_the_same_models() -> None:
    with (
        running_gateway_server('[server]\nport = 0\n[store]\nurl = "memory:"\n') as gateway,
        urllib.request.urlopen(f"{gateway.url}/v1/models?client_version=0.166.0", timeout=60) as answer,
    ):
        listed = json.loads(answer.read())
    slugs = [entry["slug"] for entry in listed["models"]]
    assert slugs == [model["id"] for model in listed["data"] if "embeddings" not in model["isthmus"]]
    assert slugs[0] == "demo/demo"


def test_run_starts_both_for_one_go_and_leaves_no_configuration_behind(tmp_path: Path) -> None:
    ask = ("exec", "--skip-git-repo-check", "-s", "danger-full-access", "create hello.txt with hello world")
    ended = isthmus(tmp_path, "codex", "run", "--log", str(tmp_path / "gateway.log"), "--", *FLAGS, *ask)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "work" / "hello.txt").read_text() == "hello world\n"
    assert not (tmp_path / "codex" / "config.toml").exists()
    assert "path=/v1/responses status=200" in (tmp_path / "gateway.log").read_text()


def test_run_ends_with_codexs_own_exit_code(tmp_path: Path) -> None:
    ended = isthmus(tmp_path, "codex", "run", "--", "exec", "--no-such-option")
    assert ended.returncode == 2
    assert "--no-such-option" in ended.stderr


KEYED = '[server]\nport = {port}\napi_keys = ["open-sesame-0123456789"]\n[store]\nurl = "memory:"\n'
ORDER = ("exec", "--skip-git-repo-check", "-s", "danger-full-access", "create hello.txt with hello world")


@pytest.mark.parametrize("way", ["variable", "pipe"])
def test_what_setup_writes_for_a_gateway_elsewhere_that_wants_a_key_works_and_undo_leaves_nothing(
    tmp_path: Path, way: str
) -> None:
    home, key = tmp_path / "codex", "open-sesame-0123456789"
    with running_gateway_server(KEYED.format(port=0)) as gateway:
        shown = {"MINE": key} if way == "variable" else {}
        flags = ("--key-env", "MINE") if way == "variable" else ("--key", "-")
        done = isthmus(tmp_path, "codex", "setup", "--gateway", gateway.url, *flags, "--yes", typed=f"{key}\n", **shown)
        assert done.returncode == 0, done.stderr
        assert key not in done.stdout + done.stderr
        assert (key in (home / "config.toml").read_text()) is (way == "pipe")
        ended = codex(home, tmp_path / "work", *FLAGS, *ORDER, **shown)
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / "work" / "hello.txt").read_text() == "hello world\n"
        assert "metadata" not in ended.stderr  # Codex warns when it does not know a model
        if way == "variable":
            unset = codex(home, tmp_path / "work", *FLAGS, *ORDER)
            assert "Missing environment variable: `MINE`" in unset.stderr
            assert "export MINE=" in unset.stderr
    assert isthmus(tmp_path, "codex", "setup", "--undo", "--yes").returncode == 0
    assert not (home / "config.toml").exists()
    assert not (home / "isthmus-models.json").exists()


def test_run_works_at_a_gateway_elsewhere_that_wants_a_key(tmp_path: Path) -> None:
    with running_gateway_server(KEYED.format(port=0)) as gateway:
        flags = ("--gateway", gateway.url, "--key", "-")
        ended = isthmus(tmp_path, "codex", "run", *flags, "--", *FLAGS, *ORDER, typed="open-sesame-0123456789\n")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "work" / "hello.txt").read_text() == "hello world\n"
    assert not (tmp_path / "codex" / "config.toml").exists()


def test_codex_waits_for_a_gateway_that_is_down_and_goes_on_when_it_is_started(tmp_path: Path) -> None:
    """The guide says so, and so do the last lines of `setup`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    where = ("--gateway", f"http://127.0.0.1:{port}", "--no-check", "--model", "demo/demo")
    done = isthmus(tmp_path, "codex", "setup", *where, "--key", "open-sesame-0123456789", "--yes")
    assert done.returncode == 0, done.stderr
    assert "waiting for network" in " ".join(done.stderr.split())
    log = tmp_path / "said"
    with log.open("w") as said:
        started = subprocess.Popen(
            [str(BINARY), *FLAGS, *ORDER],
            cwd=tmp_path / "work",
            env=environment(tmp_path / "codex"),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: "waiting for network" in log.read_text() or started.poll() is not None)
        assert started.poll() is None, log.read_text()
        with running_gateway_server(KEYED.format(port=port)):
            assert started.wait(120) == 0, log.read_text()
    finally:
        if started.poll() is None:
            started.kill()
            started.wait()
    assert (tmp_path / "work" / "hello.txt").read_text() == "hello world\n"
