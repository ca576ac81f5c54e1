"""A gateway elsewhere, for both coding agents: address, key and model are tried first, and only then written."""

from __future__ import annotations

import json
import os
import stat
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import claude_program
from isthmus.cli.commands import app
from isthmus.testing import ScriptedUpstream, error, reply
from serving import GatewayThread, running_gateway_server

KEY = "ik-open-sesame-0123456789"
GATEWAY = f"""
[server]
port = 0
api_keys = ["{KEY}"]
[store]
url = "memory:"
[models]
default = "openrouter/z-ai/glm-5.3"
[models.aliases]
fast = "demo/demo"
[providers.openrouter]
api_key = "x"
ask = false
[search]
backend = "demo"
"""
AGENTS = ("codex", "claude")
CODEX = """
import json, os, sys
told = {"arguments": sys.argv[2:], "environment": dict(os.environ)}
catalogue = next(part for part in sys.argv if part.startswith("model_catalog_json="))
told["models"] = json.load(open(json.loads(catalogue.partition("=")[2])))["models"]
json.dump(told, open(sys.argv[1], "w"))
"""


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayThread]:
    with running_gateway_server(GATEWAY) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith(("ISTHMUS_", "XDG_", "OPENROUTER", "ANTHROPIC"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.chdir(tmp_path)
    claude_program.install(tmp_path / "bin")
    script, program = tmp_path / "bin" / "codex.py", tmp_path / "bin" / "codex"
    script.write_text(CODEX)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "{tmp_path / "told"}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


def isthmus(agent: str, *arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, [agent, "setup", *arguments], input=typed)


def said(done: Result) -> str:
    return " ".join(done.output.split())


def written(home: Path, agent: str) -> dict[str, Any]:
    if agent == "codex":
        told: dict[str, Any] = tomllib.loads((home / "codex" / "config.toml").read_text())
        return told
    found: dict[str, Any] = json.loads((home / "claude" / "settings.json").read_text())["env"]
    return found


def everything(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("way", ["usual variable", "named variable", "pipe", "by hand"])
def test_a_key_opens_the_gateway_however_it_is_given_and_is_never_shown(
    home: Path, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch, agent: str, way: str
) -> None:
    arguments: tuple[str, ...] = ()
    typed = None
    match way:
        case "usual variable":
            monkeypatch.setenv("ISTHMUS_API_KEY", KEY)
        case "named variable":
            monkeypatch.setenv("MINE", KEY)
            arguments = ("--key-env", "MINE")
        case "pipe":
            arguments, typed = ("--key", "-"), f"{KEY}\n"
        case _:
            arguments = ("--key", KEY)
    done = isthmus(agent, "--gateway", f"{gateway.url}/v1/", *arguments, "--yes", typed=typed)
    assert done.exit_code == 0, done.output
    assert KEY not in done.output
    assert f"works with the gateway at {gateway.url}." in said(done)
    assert f"isthmus doctor --gateway {gateway.url}" in said(done)
    told = written(home, agent)
    if agent == "codex":
        ours = told["model_providers"]["isthmus"]
        variable = {"usual variable": "ISTHMUS_API_KEY", "named variable": "MINE"}.get(way)
        assert (ours["base_url"], told["model"]) == (f"{gateway.url}/v1", "openrouter/z-ai/glm-5.3")
        assert (ours.get("env_key"), ours.get("experimental_bearer_token")) == (variable, None if variable else KEY)
        assert variable is None or variable in ours["env_key_instructions"]
        assert variable is None or KEY not in everything(home / "codex")
        assert told["web_search"] == "live"  # it says so of itself
        listed = json.loads((home / "codex" / "isthmus-models.json").read_text())["models"]
        assert {"openrouter/z-ai/glm-5.3", "fast"} <= {entry["slug"] for entry in listed}
    else:
        assert (told["ANTHROPIC_BASE_URL"], told["ANTHROPIC_AUTH_TOKEN"]) == (gateway.url, KEY)
    assert all(not path.stat().st_mode & 0o077 for path in (home / agent).iterdir() if KEY in path.read_text())
    undone = isthmus(agent, "--undo", "--yes")
    assert undone.exit_code == 0
    assert KEY not in undone.output
    assert list((home / agent).iterdir()) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_the_users_own_secrets_near_our_lines_are_not_shown_either(
    home: Path, gateway: GatewayThread, agent: str
) -> None:
    folder = home / agent
    folder.mkdir()
    own = {
        "codex": '[model_providers.x]\nname = "X"\nexperimental_bearer_token = "mine-12345678"\n',
        "claude": '{"env": {\n  "GITHUB_TOKEN": "mine-12345678"\n}}\n',
    }[agent]
    file = folder / {"codex": "config.toml", "claude": "settings.json"}[agent]
    file.write_text(own)
    done = isthmus(agent, "--gateway", gateway.url, "--key", KEY, "--yes")
    assert done.exit_code == 0, done.output
    again = isthmus(agent, "--gateway", gateway.url, "--key", KEY, "--model", "fast", "--yes")
    undone = isthmus(agent, "--undo", "--yes")
    for each in (done, again, undone):
        assert each.exit_code == 0, each.output
        assert "mine-12345678" not in each.output
        assert KEY not in each.output
    assert file.read_text() == own


def test_a_key_in_a_file_that_others_may_read_is_told_of(home: Path, gateway: GatewayThread) -> None:
    file = home / "codex" / "config.toml"
    file.parent.mkdir()
    file.write_text("# mine\n")
    file.chmod(0o644)
    done = isthmus("codex", "--gateway", gateway.url, "--key", KEY, "--yes")
    assert f"chmod 600 {file}" in said(done)
    isthmus("codex", "--undo", "--yes")
    file.chmod(0o600)
    assert "chmod" not in isthmus("codex", "--gateway", gateway.url, "--key", KEY, "--yes").output


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "wants a key; give one with `--key -`, or in `$ISTHMUS_API_KEY`"),
        (("--key", "wrong-0123456789"), "does not take the key that was given: this API key is not known here"),
        (("--key-env", "WRONG"), "does not take the key in `$WRONG`"),
        (("--key-env", "UNSET"), "the variable `UNSET` is not set"),
        (("--key", KEY, "--key-env", "WRONG"), "give one of them"),
        (("--key", "-"), "`--key` is empty"),
        (("--key", "two\nlines"), "was it copied whole, and alone?"),
        (("--key", KEY, "--model", "fats"), "did you mean `fast`?"),
        (("--key", KEY, "--model", "justaname"), "does not serve a model `justaname`"),
        (("--key", KEY, "--model", "nowhere/x"), "does not serve a model `nowhere/x`"),
        (("--key", KEY, "--model", "demo/demo-thinkin"), "did you mean `demo/demo-thinking`?"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_written(
    home: Path,
    gateway: GatewayThread,
    monkeypatch: pytest.MonkeyPatch,
    agent: str,
    arguments: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.setenv("WRONG", "wrong-9876543210")
    done = isthmus(agent, "--gateway", gateway.url, *arguments, "--yes")
    assert done.exit_code == 1
    assert words in said(done)
    assert "wrong-" not in done.output
    assert not (home / agent).exists()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    ("step", "words"),
    [
        (reply(b"<html>"), "is not an Isthmus gateway"),
        (reply(b'{"object": "list", "data": []}'), "is not an Isthmus gateway: its list of models is another one's"),
        (error(404, "no such page"), "is not an Isthmus gateway: no such page"),
        (error(301, "moved"), "HTTP 301, which leads elsewhere; is it `https://`?"),
        (error(503, "the store is away"), "is in trouble: the store is away"),
    ],
)
def test_whoever_else_answers_is_told_apart(home: Path, agent: str, step: Any, words: str) -> None:
    with ScriptedUpstream.running([step]) as other:
        done = isthmus(agent, "--gateway", other.url, "--key", KEY, "--yes")
    assert done.exit_code == 1
    assert words in said(done)
    assert not (home / agent).exists()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:9", "no gateway answers at `http://127.0.0.1:9`"),
        ("gateway.example.com", "write `https://gateway.example.com`"),
        ("localhost:8484", "write `http://localhost:8484`"),
        ("ftp://x", "is not an address"),
        ("http://me:secret-word@127.0.0.1:9", "the address holds a password"),
    ],
)
def test_an_address_where_nobody_is_or_that_is_none(home: Path, url: str, words: str) -> None:
    done = isthmus("codex", "--gateway", url, "--key", KEY, "--yes")
    assert done.exit_code == 1
    assert words in said(done)
    assert "secret-word" not in done.output


@pytest.mark.parametrize("agent", AGENTS)
def test_unchecked_it_is_written_although_nobody_answers(home: Path, agent: str) -> None:
    where = ("--gateway", "https://gateway.example.invalid", "--no-check")
    nameless = isthmus(agent, *where, "--yes")
    assert nameless.exit_code == 1
    assert "name one with `--model`" in said(nameless)
    done = isthmus(agent, *where, "--model", "deepseek/deepseek-v4-pro", "--key", KEY, "--yes")
    assert done.exit_code == 0, done.output
    assert KEY not in done.output
    if agent == "codex":
        (entry,) = json.loads((home / "codex" / "isthmus-models.json").read_text())["models"]
        assert (entry["slug"], entry["context_window"]) == ("deepseek/deepseek-v4-pro", 1_000_000)
    else:
        assert written(home, agent)["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == "1000000"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_model_that_is_served_and_not_listed_may_be_named(home: Path, gateway: GatewayThread, agent: str) -> None:
    model = "openrouter/somebody/quite-another-thing"
    done = isthmus(agent, "--gateway", gateway.url, "--key", KEY, "--model", model, "--yes")
    assert done.exit_code == 0, done.output
    assert written(home, agent)["model" if agent == "codex" else "ANTHROPIC_MODEL"] == model
    if agent == "codex":
        listed = json.loads((home / "codex" / "isthmus-models.json").read_text())["models"]
        assert listed[0]["slug"] == model


@pytest.mark.parametrize("agent", AGENTS)
def test_a_key_that_everybody_on_the_way_can_read_is_warned_of(home: Path, agent: str) -> None:
    flags = ("--no-check", "--model", "demo/demo", "--key", KEY, "--yes")
    plain = isthmus(agent, "--gateway", "http://gateway.example.invalid", *flags)
    assert "travels to http://gateway.example.invalid unencrypted" in said(plain)
    assert "unencrypted" not in isthmus(agent, "--gateway", "https://gateway.example.invalid", *flags).output


def test_run_starts_codex_alone_at_the_gateway_and_its_key_is_in_no_argument(
    home: Path, gateway: GatewayThread
) -> None:
    arguments = ["codex", "run", "--gateway", gateway.url, "--key", KEY, "--binary", str(home / "bin" / "codex")]
    done = CliRunner().invoke(app, [*arguments, "--", "exec", "hi"])
    assert done.exit_code == 0, done.output
    told = json.loads((home / "told").read_text())
    assert told["arguments"][-2:] == ["exec", "hi"]
    assert f'model_providers.isthmus.base_url="{gateway.url}/v1"' in told["arguments"]
    assert 'model_providers.isthmus.env_key="ISTHMUS_API_KEY"' in told["arguments"]
    assert KEY not in " ".join(told["arguments"])
    assert told["environment"]["ISTHMUS_API_KEY"] == KEY
    assert "fast" in {entry["slug"] for entry in told["models"]}


def test_a_run_beside_its_own_gateway_is_not_stopped_by_the_key_of_another(
    home: Path, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    assert isthmus("codex", "--gateway", gateway.url, "--key-env", "MINE", "--yes").exit_code == 0
    monkeypatch.delenv("MINE")
    done = CliRunner().invoke(app, ["codex", "run", "--binary", str(home / "bin" / "codex")])
    assert done.exit_code == 0, done.output
    assert json.loads((home / "told").read_text())["environment"]["MINE"]  # Codex would refuse to start without


def test_a_gateway_of_this_machine_that_wants_a_key_is_not_set_up_without(home: Path) -> None:
    Path("isthmus.toml").write_text(f'[server]\napi_keys = ["{KEY}"]\n')
    done = isthmus("codex", "--yes")
    assert done.exit_code == 1
    assert "name the variable that holds one with `--key-env`" in said(done)
    assert isthmus("codex", "--key-env", "MINE", "--yes").exit_code == 0
    assert written(home, "codex")["model_providers"]["isthmus"]["env_key"] == "MINE"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_missing_key_of_a_provider_names_its_variable(home: Path, agent: str) -> None:
    model = ("--model", "deepseek/deepseek-v4-pro")
    binary = ("--binary", str(home / "bin" / agent))
    for command in (("setup", "--yes"), ("run", *binary)):
        unknown = CliRunner().invoke(app, [agent, *command, *model])
        assert unknown.exit_code == 1
        assert "set `DEEPSEEK_API_KEY` in the environment of the gateway" in said(unknown)
    Path("isthmus.toml").write_text("[providers.deepseek]\n")
    done = isthmus(agent, *model, "--yes")
    assert done.exit_code == 0
    assert "Provider deepseek has no key; set DEEPSEEK_API_KEY where the gateway runs." in said(done)
    started = CliRunner().invoke(app, [agent, "run", *binary, *model])
    assert started.exit_code == 1
    assert "provider `deepseek` has no key; set `DEEPSEEK_API_KEY`" in said(started)
