"""`isthmus codex setup` beside a Codex that writes into the same file: what it writes stays, what is ours goes."""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.cli.codex_daemon import daemon_runs
from real.codex.full_screen import FullScreen, full_screen
from real.codex.rig import BINARY, environment, real
from waiting import until

pytestmark = [*real, pytest.mark.timeout(600)]

OWN = """\
# my settings
model = "gpt-5.5"    # the usual one
approval_policy='never'

[tui]
theme = "dark"

[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
apps = false
remote_plugin = false
plugin_sharing = false

[shell_environment_policy]
set = { EDITOR = "vi" }   # mine"""

GATEWAY = """
[models]
default = "deepseek/deepseek-v4-pro"
[providers.deepseek]
api_key = "x"
[providers.zhipu]
api_key = "x"
"""


class Home:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codex_home, self.work = folder / "codex", folder / "work"
        self.config = self.codex_home / "config.toml"
        self.codex_home.mkdir()
        (self.work / ".codex").mkdir(parents=True)
        (folder / "isthmus.toml").write_text(GATEWAY)
        self.config.write_text(OWN)

    @property
    def said(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self.config.read_text())
        except (OSError, tomllib.TOMLDecodeError):  # while it is being written
            return {}

    def isthmus(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "isthmus", "codex", "setup", "--yes", *arguments],
            cwd=self.folder,
            env={**environment(self.codex_home), "COLUMNS": "80"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def codex(self, *arguments: str) -> str:
        done = subprocess.run(
            [str(BINARY), *arguments],
            cwd=self.work,
            env=environment(self.codex_home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, **values: Any) -> None:
        """Through the door that editors use: the app-server writes into the file."""
        edits = [{"keyPath": key, "value": value, "mergeStrategy": "upsert"} for key, value in values.items()]
        asked = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
            {"method": "initialized"},
            {"id": 2, "method": "config/batchWrite", "params": {"edits": edits}},
        ]
        server = subprocess.Popen(
            [str(BINARY), "app-server"],
            cwd=self.work,
            env=environment(self.codex_home),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with server:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write("".join(json.dumps(each) + "\n" for each in asked))
            server.stdin.flush()
            answer = next(each for each in map(json.loads, server.stdout) if each.get("id") == 2)
            server.stdin.close()
        assert answer["result"]["status"] == "ok", answer


@pytest.fixture
def home() -> Iterator[Home]:
    """Not under pytest's own folder: the path of Codex's socket must be short."""
    with tempfile.TemporaryDirectory(prefix="cx") as folder:
        yield Home(Path(folder))


def trust_the_project(home: Home, screen: FullScreen) -> bool:
    trusted = {str(home.work): {"trust_level": "trusted"}}
    if home.said.get("projects") == trusted:
        return True
    return screen.see("Trust this folder?") and screen.insist("\r", lambda: home.said.get("projects") == trusted)


def pick_the_second_model(home: Home, screen: FullScreen) -> bool:
    for _ in range(10):
        screen.press("\x15/model")  # the line is emptied first
        screen.press("\r")
        if screen.see("Select Model and Effort", within=10):
            break
    screen.press("2")
    picked = "deepseek/deepseek-flash"
    return (
        screen.see("Select Reasoning Level")
        and screen.insist("\r", lambda: home.said.get("model") == picked)
        and screen.wait(lambda: "model_reasoning_effort" in home.said)
    )


def use_full_screen(home: Home) -> None:
    """Trust the project, then choose a model, as a person does; a screen that gave up is opened once more."""
    seen = []
    for _ in range(3):
        with full_screen([str(BINARY), "--no-daemon"], home.work, environment(home.codex_home)) as screen:
            if trust_the_project(home, screen) and pick_the_second_model(home, screen):
                return
            seen.append(screen.screen[-1000:])
    pytest.fail("\n\n".join([*seen, home.config.read_text()]))


def only_added_to(before: str, after: str) -> bool:
    changes = difflib.ndiff(before.splitlines(), after.splitlines())
    return all(line.startswith(("  ", "+ ")) for line in changes if not line.startswith("? "))


def test_what_codex_writes_survives_another_setup_and_the_undo(home: Home) -> None:
    (home.work / ".codex" / "config.toml").write_text('model_verbosity = "low"\n')  # what makes Codex ask for trust
    home.isthmus()
    assert home.said["model"] == "deepseek/deepseek-v4-pro"
    home.codex("mcp", "add", "docs", "--env", "A=b", "--", "echo", "hi")
    use_full_screen(home)
    by_codex = {key: home.said[key] for key in ("mcp_servers", "projects", "model_reasoning_effort", "tui")}

    home.isthmus("--model", "zhipu/glm-5.3")
    assert home.said["model"] == "zhipu/glm-5.3"
    assert {key: home.said[key] for key in by_codex} == by_codex
    assert "docs" in home.codex("mcp", "list")

    home.isthmus("--undo")
    left = home.config.read_text()
    assert "isthmus" not in left.lower()
    assert home.said == {**tomllib.loads(OWN), **by_codex}
    assert only_added_to(OWN, left), left
    assert "docs" in home.codex("mcp", "list")
    assert not (home.codex_home / "isthmus-models.json").exists()


def test_without_a_word_from_codex_every_byte_is_as_before(home: Home) -> None:
    home.isthmus()
    slugs = [entry["slug"] for entry in json.loads(home.codex("debug", "models"))["models"]]
    assert slugs[:2] == ["deepseek/deepseek-v4-pro", "deepseek/deepseek-flash"]
    home.isthmus("--undo")
    assert home.config.read_text() == OWN


def test_a_key_that_codex_writes_into_our_table_stays_and_codex_still_starts(home: Home) -> None:
    home.isthmus()
    home.write(**{"model_providers.isthmus.request_max_retries": 7, "model": "zhipu/glm-5"})
    home.isthmus("--model", "zhipu/glm-5.3")
    assert home.said["model_providers"]["isthmus"]["request_max_retries"] == 7
    home.isthmus("--undo")
    assert home.said["model_providers"] == {"isthmus": {"name": "Isthmus", "request_max_retries": 7}}
    assert home.said["model"] == "gpt-5.5"
    home.codex("mcp", "list")


def test_a_listening_codex_is_noticed_and_the_command_that_ends_it_is_its_own(home: Home) -> None:
    assert "daemon" not in home.isthmus()
    server = subprocess.Popen(
        [str(BINARY), "app-server", "--listen", "unix://"],
        cwd=home.work,
        env=environment(home.codex_home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: daemon_runs(home.codex_home) or server.poll() is not None)
        assert server.poll() is None
        said = home.isthmus("--model", "zhipu/glm-5.3")
    finally:
        server.kill()
        server.wait()
    assert "\n  codex app-server daemon stop\n" in said
    assert "Usage: codex app-server daemon stop" in home.codex("app-server", "daemon", "stop", "--help")
    assert "daemon" not in home.isthmus("--undo")
