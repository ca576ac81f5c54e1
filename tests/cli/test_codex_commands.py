"""`isthmus codex setup`: shows what it will do, does that and nothing else, and takes it back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from isthmus.cli.main import app
from serving import running_gateway_server

OWN = '# my settings\nmodel = "gpt-5.5"\n\n[tui]\ntheme = "dark"'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DEEPSEEK_API_KEY", "OPENAI_API_KEY", "ISTHMUS_CONFIG", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "codex").mkdir()
    return tmp_path / "codex"


def isthmus(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["codex", "setup", *arguments])


def test_setup_writes_provider_and_catalogue_and_undo_leaves_no_trace(home: Path) -> None:
    config = home / "config.toml"
    config.write_text(OWN)
    config.chmod(0o640)
    done = isthmus("--yes")
    assert done.exit_code == 0, done.output
    assert '+model = "demo/demo"' in done.output
    written = tomllib.loads(config.read_text())
    assert written["model_provider"] == "isthmus"
    assert written["tui"] == {"theme": "dark"}
    entries = json.loads((home / "isthmus-models.json").read_text())["models"]
    assert entries[0]["slug"] == "demo/demo"
    assert (home / "config.toml.before-isthmus").read_text() == OWN
    assert config.stat().st_mode & 0o777 == 0o640
    assert isthmus("--undo", "--yes").exit_code == 0
    assert config.read_text() == OWN
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_without_a_codex_configuration_one_is_made_and_undo_removes_it(home: Path) -> None:
    assert isthmus("--yes").exit_code == 0
    assert (home / "config.toml").exists()
    assert isthmus("--undo", "--yes").exit_code == 0
    assert list(home.iterdir()) == []


def test_a_profile_leaves_the_main_file_alone(home: Path) -> None:
    (home / "config.toml").write_text(OWN)
    done = isthmus("--profile", "cheap", "--model", "demo/demo", "--yes")
    assert "codex -p cheap" in done.output
    assert (home / "config.toml").read_text() == OWN
    assert tomllib.loads((home / "cheap.config.toml").read_text())["model"] == "demo/demo"
    assert isthmus("--undo", "--profile", "cheap", "--yes").exit_code == 0
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_undoing_a_profile_keeps_the_catalogue_that_the_main_file_still_reads(home: Path) -> None:
    isthmus("--yes")
    isthmus("--profile", "cheap", "--yes")
    isthmus("--undo", "--profile", "cheap", "--yes")
    assert sorted(path.name for path in home.iterdir()) == ["config.toml", "isthmus-models.json"]


def test_a_dry_run_writes_nothing(home: Path) -> None:
    done = isthmus("--dry-run")
    assert done.exit_code == 0
    assert "+[model_providers.isthmus]" in done.output
    assert list(home.iterdir()) == []


def test_setting_up_twice_changes_nothing_the_second_time(home: Path) -> None:
    isthmus("--yes")
    assert "nothing to change" in isthmus("--yes").output


def test_another_codex_home_and_a_key_variable(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert isthmus("--codex-home", str(other), "--key-env", "MY_KEY", "--yes").exit_code == 0
    assert tomllib.loads((other / "config.toml").read_text())["model_providers"]["isthmus"]["env_key"] == "MY_KEY"
    assert list(home.iterdir()) == []


def test_a_running_gateway_is_asked_for_its_models(home: Path) -> None:
    with running_gateway_server('[server]\nport = 0\n[store]\nurl = "memory:"\n') as gateway:
        done = isthmus("--url", gateway.url, "--yes")
        assert done.exit_code == 0, done.output
        wrong = isthmus("--url", gateway.url, "--model", "nope", "--yes")
    written = tomllib.loads((home / "config.toml").read_text())
    assert written["model_providers"]["isthmus"]["base_url"] == f"{gateway.url}/v1"
    assert written["model"] == "demo/demo"
    assert wrong.exit_code == 1
    assert "demo/demo" in wrong.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--url", "http://127.0.0.1:9"), "is it running?"),
        (("--model", "nowhere/x"), "not configured"),
        (("--profile", "../evil"), "cannot be a profile's name"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(home: Path, arguments: tuple[str, ...], words: str) -> None:
    done = isthmus(*arguments, "--yes")
    assert done.exit_code == 1
    assert words in " ".join(done.output.split())
    assert list(home.iterdir()) == []
