"""`isthmus keys` and `isthmus audit`: what a person types and reads, on a real file."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from isthmus.cli.commands import app

SECRET = re.compile(r"ik_[A-Za-z0-9_-]{43}")


class Shell:
    def __init__(self, url: str) -> None:
        self.url = url

    def run(self, *arguments: str, code: int = 0, width: int = 80) -> Result:
        environment = {"NO_COLOR": "1", "COLUMNS": str(width)}
        result = CliRunner().invoke(app, [*arguments, "--store", self.url], env=environment)
        assert result.exit_code == code, result.output
        return result

    def keys(self, *arguments: str, **options: Any) -> Result:
        return self.run("keys", *arguments, **options)

    def told(self, *arguments: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.keys(*arguments, "--json").stdout)
        return told


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(f"sqlite:{tmp_path}/new/x.db")


def test_create_prints_the_key_for_pipes_and_how_to_use_it_for_people(shell: Shell, tmp_path: Path) -> None:
    result = shell.keys("create", "ann")
    secret = result.stdout.strip()
    assert SECRET.fullmatch(secret)
    assert f"OPENAI_API_KEY={secret}" in result.stderr
    assert f"ANTHROPIC_API_KEY={secret}" in result.stderr
    assert "it is not shown again" in result.stderr
    for later in (shell.keys("list"), shell.keys("show", "ann"), shell.run("audit")):
        assert not SECRET.search(later.output)
    for file in (tmp_path / "new").iterdir():
        assert secret.encode() not in file.read_bytes(), "only its digest is kept"


def test_every_option_reaches_the_key(shell: Shell) -> None:
    options = ["--team", "search", "--models", "deepseek/*, fast", "--models", "slow", "--endpoints", "chat,models"]
    options += ["--tools", "web_search,mcp:docs", "--admin", "--expires", "2999-01-31", "--metadata", "a=b=c"]
    options += ["--requests-per-minute", "1", "--tokens-per-minute", "2", "--concurrent-requests", "3"]
    options += ["--concurrent-streams", "4", "--daily-budget", "5.5", "--monthly-budget", "6", "--metadata", "d="]
    told = shell.told("create", "ann", *options)
    assert SECRET.fullmatch(told.pop("key"))
    assert told == shell.told("show", "ann")
    expected = {
        "name": "ann",
        "team": "search",
        "owner": "team:search",
        "models": ["deepseek/*", "fast", "slow"],
        "endpoints": ["chat", "models"],
        "tools": ["web_search", "mcp:docs"],
        "admin": True,
        "status": "active",
        "expires_at": 32474736000.0,
        "metadata": {"a": "b=c", "d": ""},
        "requests_per_minute": 1,
        "tokens_per_minute": 2,
        "concurrent_requests": 3,
        "concurrent_streams": 4,
        "daily_budget": 5.5,
        "monthly_budget": 6.0,
    }
    assert told == {**told, **expected}
    back = ["--models", "all", "--endpoints", "all", "--tools", "all", "--no-admin", "--expires", "never", "--team", ""]
    changed = shell.told("change", "ann", *back, "--requests-per-minute", "0")
    expected = {"models": [], "endpoints": [], "tools": None, "admin": False, "expires_at": None, "team": None}
    assert changed == {**changed, **expected, "requests_per_minute": None, "tokens_per_minute": 2}
    assert shell.told("change", "ann", "--tools", "none", "--name", "bob")["tools"] == []
    assert shell.told("show", "bob")["name"] == "bob"


def test_a_duration_is_counted_from_now(shell: Shell) -> None:
    told = shell.told("create", "ann", "--expires", "30d")
    assert told["expires_at"] - told["created_at"] == pytest.approx(30 * 86_400, abs=1)


def test_the_list_shows_those_in_force_and_all_when_asked(shell: Shell) -> None:
    for name in ("ann", "bob", "carla"):
        shell.keys("create", name, "--team", "t" if name == "carla" else "")
    assert "revoked ik_" in shell.keys("revoke", "bob").stdout
    assert [line.split()[0] for line in shell.keys("list").stdout.splitlines()[2:]] == ["ann", "carla"]
    every = shell.keys("list", "--all").stdout
    assert re.search(r"bob .*✗ revoked", every)
    assert [line.split()[0] for line in shell.keys("list", "--team", "t").stdout.splitlines()[2:]] == ["carla"]
    lines = shell.keys("list", "--all", "--json").stdout.splitlines()
    assert [json.loads(line)["status"] for line in lines] == ["active", "revoked", "active"]


@pytest.mark.parametrize("width", [80, 140])
def test_tables_fit_their_terminal(shell: Shell, width: int) -> None:
    name, team = "a person with a rather long name of her own", "a-team-with-a-long-name"
    made = shell.told("create", name, "--team", team, "--models", "x/*", "--daily-budget", "5")
    for table in (shell.keys("list", width=width), shell.run("audit", width=width)):
        assert max(map(len, table.stdout.splitlines())) <= width
    listed = shell.keys("list", width=width).stdout
    assert made["prefix"] in listed
    assert ("x/*; $5.00 a day" in listed) == (made["id"] in listed) == (width == 140)
    assert max(map(len, shell.keys("show", made["id"], width=width).stdout.splitlines())) <= width


def test_rotate_gives_a_new_key_and_says_until_when_the_old_one_opens(shell: Shell) -> None:
    old = shell.keys("create", "ann").stdout.strip()
    result = shell.keys("rotate", "ann", "--grace", "24h")
    assert SECRET.fullmatch(result.stdout.strip())
    assert result.stdout.strip() != old
    assert "the key before opens until 2" in result.stderr
    assert shell.told("show", "ann")["previous_until"]
    assert "the key before" not in shell.keys("rotate", "ann").stderr
    assert shell.told("show", "ann")["previous_until"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "eve"], "there is no key `eve`; `isthmus keys list --all`"),
        (["revoke", "eve"], "there is no key `eve`"),
        (["rotate", "eve"], "there is no key `eve`"),
        (["change", "ann"], "say what is to change"),
        (["create", "ann"], "called `ann`; choose another name"),
        (["create", "x", "--expires", "soon"], "`--expires soon` must be a duration"),
        (["create", "x", "--expires", "2020-01-01"], "`expires_at` must be a time that is still to come"),
        (["create", "x", "--endpoints", "nope"], "has `nope`, which is none"),
        (["create", "x", "--metadata", "plain"], "must be `NAME=VALUE`"),
        (["rotate", "ann", "--grace", "1y"], "`--grace 1y` must be a duration"),
        (["rotate", "ann", "--grace", "99d"], "30 days"),
    ],
)
def test_a_mistake_is_one_line_with_the_next_step(shell: Shell, arguments: list[str], words: str) -> None:
    shell.keys("create", "ann")
    result = shell.keys(*arguments, code=1)
    assert words in " ".join(result.stderr.split())
    assert not SECRET.search(result.output)


def test_looking_makes_no_store(shell: Shell, tmp_path: Path) -> None:
    for arguments in (["keys", "list"], ["keys", "revoke", "x"], ["audit"]):
        assert "isthmus keys create NAME" in " ".join(shell.run(*arguments, code=1).stderr.split())
    assert list(tmp_path.iterdir()) == []
    assert "/v1/isthmus/keys" in " ".join(Shell("memory:").keys("create", "x", code=1).stderr.split())


def test_the_audit_tells_who_did_what_in_pages(shell: Shell) -> None:
    shell.keys("create", "ann")
    shell.keys("change", "ann", "--models", "fast")
    shell.keys("revoke", "ann")
    told = [json.loads(line) for line in shell.run("audit", "--json").stdout.splitlines()]
    assert [each["action"] for each in told] == ["key.revoke", "key.change", "key.create"]
    assert {each["actor"] for each in told} == {"cli"}
    assert told[1]["details"]["models"] == "fast"
    older = shell.run("audit", "--json", "--before", str(told[0]["id"]), "--most", "1").stdout.splitlines()
    assert [json.loads(line)["action"] for line in older] == ["key.change"]
    assert "nothing before that" in shell.run("audit", "--before", "1").stderr


def test_the_configured_file_is_used_and_its_bound_of_deeds(tmp_path: Path) -> None:
    config = tmp_path / "isthmus.toml"
    config.write_text('[store]\nurl = "sqlite:keys.db"\naudit_entries = 2\n')

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "isthmus", *arguments, "--config", str(config)]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout

    for name in ("a", "b", "c"):
        run("keys", "create", name)
    assert (tmp_path / "keys.db").is_file()
    assert [json.loads(line)["details"]["name"] for line in run("audit", "--json").splitlines()] == ["c", "b"]
