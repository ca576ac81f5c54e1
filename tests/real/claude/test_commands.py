"""The two commands: what `isthmus claude setup` writes works with the real Claude Code, and `run` needs no setup."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream, chat, error
from real.claude.rig import BINARY, NOWHERE, PATIENCE, isolated, real, rig
from real.claude.vendors import DEEPSEEK, GLM
from serving import running_gateway_server

pytestmark = real

OWN = '{\n  "env": { "ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "sk-ant-mine" },\n  "x": 1\n}'


class House:
    """A home with Claude Code's own settings in it, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.work = folder, folder / ".claude", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.settings = self.home / "settings.json"
        self.settings.write_text(OWN)

    def isthmus(self, *arguments: str, proxy: str = NOWHERE, typed: str = "") -> subprocess.CompletedProcess[str]:
        return self._start([sys.executable, "-m", "isthmus", "claude", *arguments], proxy, typed)

    def claude(self, *arguments: str) -> dict[str, Any]:
        done = self._start([str(BINARY), "-p", "--output-format", "json", *arguments], NOWHERE)
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def _start(self, line: list[str], proxy: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        environment = isolated(self.home, proxy)
        path = f"{BINARY.parent}{os.pathsep}{environment['PATH']}"
        return subprocess.run(
            line,
            cwd=self.work,
            env={**environment, "PATH": path, "COLUMNS": "200"},
            input=typed,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "claude-code.md"
SHOWN = next(line.strip() for line in GUIDE.read_text().splitlines() if "isthmus claude run -- -p" in line)
ORDER = shlex.split(SHOWN)[4:]
"""What the guide has its reader do first."""


def test_run_makes_a_file_with_the_demo_model_whatever_the_users_own_settings_say(house: House) -> None:
    log = house.folder / "gateway.log"
    with ScriptedUpstream.running(default=error(403, "nobody is to come here")) as trap:
        done = house.isthmus("run", "--log", str(log), "--", *ORDER, proxy=trap.url)
        assert [request.target for request in trap.requests] == []
    assert done.returncode == 0, done.stderr
    assert (house.work / "hello.txt").read_text() == "hello world"
    assert "hello.txt" in done.stdout
    assert "path=/v1/messages status=200" in log.read_text()
    assert house.settings.read_text() == OWN
    assert "sk-ant-mine" not in log.read_text()


def test_run_ends_with_claude_codes_own_exit_code(house: House) -> None:
    done = house.isthmus("run", "--", "--no-such-option")
    assert done.returncode == 1
    assert "--no-such-option" in done.stderr


def test_run_at_a_gateway_elsewhere_edits_a_file_too(house: House) -> None:
    config = '[server]\nport = 0\napi_keys = ["open sesame"]\n[store]\nurl = "memory:"\n'
    with running_gateway_server(config) as gateway:
        done = house.isthmus("run", "--gateway", gateway.url, "--key", "open sesame", "--", *ORDER)
    assert done.returncode == 0, done.stderr
    assert (house.work / "hello.txt").read_text() == "hello world"


def test_what_setup_writes_makes_claude_code_use_the_gateway_and_undo_gives_every_byte_back(house: House) -> None:
    (house.folder / "rig").mkdir()
    with rig(house.folder / "rig", chat("Hi through the gateway."), target=DEEPSEEK) as it:
        done = house.isthmus("setup", "--gateway", it.gateway.url, "--yes")
        assert done.returncode == 0, done.stderr
        said = house.claude("hi")
    assert said["result"] == "Hi through the gateway."
    facts = said["modelUsage"][DEEPSEEK]
    assert facts["contextWindow"] == 1_000_000
    assert it.bodies[0]["max_tokens"] == 64_000
    assert house.isthmus("setup", "--undo", "--yes").returncode == 0
    assert house.settings.read_text() == OWN
    assert not (house.home / "isthmus-setup.json").exists()


def test_a_gateway_elsewhere_that_wants_a_key_is_set_up_by_a_pipe_and_used(house: House) -> None:
    key = "open-sesame-0123456789"
    config = f'[server]\nport = 0\napi_keys = ["{key}"]\n[store]\nurl = "memory:"\n'
    with running_gateway_server(config) as gateway:
        keyless = house.isthmus("setup", "--gateway", gateway.url, "--yes")
        assert keyless.returncode == 1
        assert "wants a key" in keyless.stderr
        assert house.settings.read_text() == OWN
        done = house.isthmus("setup", "--gateway", gateway.url, "--key", "-", "--yes", typed=f"{key}\n")
        assert done.returncode == 0, done.stderr
        assert key not in done.stdout + done.stderr
        assert "sk-ant-mine" not in done.stdout + done.stderr
        said = house.claude("--permission-mode", "acceptEdits", "create hello.txt with hello world")
    assert said["is_error"] is False, said
    assert (house.work / "hello.txt").read_text() == "hello world"
    away = house.claude("hi")  # the gateway is down now
    assert (away["is_error"], "Connection refused" in away["result"]) == (True, True), away
    assert house.isthmus("setup", "--undo", "--yes").returncode == 0
    assert house.settings.read_text() == OWN


def test_what_claude_code_writes_into_its_settings_survives_the_undo(house: House) -> None:
    house.isthmus("setup", "--yes")
    house._start([str(BINARY), "config", "set", "-g", "theme", "dark"], NOWHERE)
    house._start([str(BINARY), "mcp", "add", "-s", "user", "docs", "--", "echo", "hi"], NOWHERE)
    written = json.loads(house.settings.read_text())
    written["permissions"] = {"allow": ["Bash(ls)"]}
    house.settings.write_text(json.dumps(written, indent=2) + "\n")
    assert house.isthmus("setup", "--undo", "--yes").returncode == 0
    left = json.loads(house.settings.read_text())
    assert left.pop("permissions") == {"allow": ["Bash(ls)"]}
    assert {name: left[name] for name in json.loads(OWN)} == json.loads(OWN)


def test_discovery_shows_every_model_and_what_is_picked_there_works(house: House) -> None:
    (house.folder / "rig").mkdir()
    more = '[models.aliases]\nfast = "deepseek/deepseek-flash"\n'
    with rig(house.folder / "rig", chat("Hi."), chat("Picked."), lenient=True, more=more) as it:
        house.isthmus("setup", "--gateway", it.gateway.url, "--yes")
        house.claude("hi")
        (cache,) = house.home.rglob("gateway-models.json")
        listed = {entry["id"]: entry["display_name"] for entry in json.loads(cache.read_text())["models"]}
        assert {f"claude-{DEEPSEEK}", "claude-fast"} <= set(listed)
        picked = house.claude("--model", "claude-fast", "hi")
    assert picked["result"] == "Picked."
    assert [body["model"] for body in it.bodies] == ["deepseek-v4-pro", "deepseek-flash"]


def test_a_model_that_the_gateway_does_not_serve_is_named_with_what_there_is(house: House) -> None:
    done = house.isthmus("run", "--model", GLM, "--", "-p", "hi")
    assert done.returncode == 1
    assert "zhipu" in done.stderr
