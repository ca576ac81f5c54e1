"""`isthmus claude run`: how Claude Code is started, and that nothing of it is left when it has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claude_program import install, told
from serving import running_gateway_server


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DEEPSEEK_API_KEY", "ISTHMUS_CONFIG", "ISTHMUS_API_KEY", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-mine")
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    return install(tmp_path / "bin")


def isthmus(*arguments: str) -> tuple[int, str]:
    """A process of its own, because the log and the terminal are those of a whole process."""
    done = subprocess.run(
        [sys.executable, "-m", "isthmus", "claude", "run", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, " ".join(done.stderr.split())


def test_it_is_told_of_the_gateway_beside_it_by_variables_and_by_settings_that_win(program: Path) -> None:
    code, said = isthmus("--model", "demo/demo-thinking", "--", "-p", "hi", "--settings-like")
    assert code == 0, said
    noted = told(program)
    assert noted["arguments"][2:] == ["-p", "hi", "--settings-like"]
    env, mine = noted["settings"]["env"], noted["environment"]
    assert env["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert env["ANTHROPIC_MODEL"] == "demo/demo-thinking"
    assert {name: mine[name] for name, value in env.items() if value} == {n: value for n, value in env.items() if value}
    assert (env["ANTHROPIC_API_KEY"], env["CLAUDE_CODE_USE_BEDROCK"]) == ("", "")
    assert "ANTHROPIC_API_KEY" not in mine
    assert "CLAUDE_CODE_USE_BEDROCK" not in mine
    assert "127.0.0.1" in mine["NO_PROXY"]


def test_its_key_is_in_no_argument_and_its_file_is_gone_with_it(program: Path, tmp_path: Path) -> None:
    assert isthmus("--", "-p", "hi") == (0, "")
    noted = told(program)
    assert noted["settings"]["env"]["ANTHROPIC_AUTH_TOKEN"] not in " ".join(noted["arguments"])
    assert noted["mode"] == 0o700
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / ".claude").exists()


def test_the_gateway_beside_it_serves_nobody_else(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("isthmus.toml").write_text('[server]\napi_keys = ["of the gateway for everybody"]\n')
    asked = [{"path": "/v1/models", "key": key} for key in ("guessed", "of the gateway for everybody")]
    monkeypatch.setenv("ASK", json.dumps(asked))
    monkeypatch.setenv("CODE", "7")
    log = tmp_path / "gateway.log"
    assert isthmus("--log", str(log)) == (7, "")
    refused = [line for line in log.read_text().splitlines() if "path=/v1/models" in line]
    assert [("status=401" in line) for line in refused] == [True, True]


def test_a_gateway_elsewhere_is_used_as_it_is(program: Path) -> None:
    config = '[server]\nport = 0\napi_keys = ["open sesame"]\n[store]\nurl = "memory:"\n'
    with running_gateway_server(config) as gateway:
        refused, why = isthmus("--gateway", gateway.url, "--", "-p", "hi")
        done = isthmus("--gateway", gateway.url, "--key", "open sesame", "--model", "demo/demo", "--", "-p", "hi")
    assert refused == 1, why
    assert done == (0, "")
    env = told(program)["settings"]["env"]
    assert (env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_AUTH_TOKEN"]) == (gateway.url, "open sesame")
    assert env["ANTHROPIC_MODEL"] == "demo/demo"


def test_a_missing_program_is_told_with_how_to_get_it(program: Path, tmp_path: Path) -> None:
    program.unlink()
    code, said = isthmus()
    assert code == 1
    assert "npm install -g @anthropic-ai/claude-code" in said
    code, said = isthmus("--binary", str(tmp_path / "nothing"))
    assert code == 1
    assert "is not an executable file" in said


def test_where_its_own_installer_puts_it_is_looked_at_too(program: Path, tmp_path: Path) -> None:
    own = tmp_path / ".local" / "bin"
    own.mkdir(parents=True)
    os.rename(program, own / "claude")
    assert isthmus("--", "-p", "hi") == (0, "")


def test_an_old_program_runs_with_a_warning(program: Path, tmp_path: Path) -> None:
    install(tmp_path / "bin", "1.0.9 (Claude Code)")
    code, said = isthmus("--", "-p", "hi")
    assert code == 0
    assert "Claude Code 1.0.9 is older" in said
