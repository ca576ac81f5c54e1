"""`isthmus config check | print`, as a shell sees them."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from isthmus.cli.config_commands import config_app, parse_settings
from isthmus.errors import ConfigError

app = typer.Typer()
app.add_typer(config_app)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def _run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(app, ["config", *arguments], env={"COLUMNS": "200", **environ})


def test_check_without_a_file_shows_the_demo() -> None:
    done = _run("check")
    assert done.exit_code == 0, done.output
    assert "The configuration is sound." in done.output
    assert "http://127.0.0.1:8484" in done.output
    assert "demo/demo" in done.output


def test_check_summarises_providers_keys_aliases_and_warnings() -> None:
    Path("isthmus.toml").write_text(
        '[models.aliases]\n"gpt-5.5" = "deepseek/v4"\n[models.fallbacks]\n"gpt-5.5" = ["mine/x"]\n'
        '[providers.deepseek]\n[providers.mine]\nuses = "vllm"\nbase_url = "http://u:SECRET-1@127.0.0.1:1/v1"\n'
        'api_key = "SECRET-2"\n[providers.groq]\n'
    )
    done = _run("check", DEEPSEEK_API_KEY="SECRET-3")
    assert done.exit_code == 0, done.output
    assert "SECRET" not in done.output
    words = [line.split() for line in done.output.splitlines()]
    assert ["deepseek", "deepseek", "https://api.deepseek.com", "${DEEPSEEK_API_KEY}"] in words
    assert ["mine", "vllm", "http://u:<redacted>@127.0.0.1:1/v1", "in", "the", "file"] in words
    assert ["groq", "groq", "https://api.groq.com/openai/v1", "missing"] in words
    assert ["gpt-5.5", "deepseek/v4", "mine/x"] in words
    assert "warning" in done.output
    assert "set `GROQ_API_KEY`" in done.output


def test_check_lists_every_problem_with_its_fix_and_fails() -> None:
    Path("isthmus.toml").write_text('[server]\nprot = 1\n[log]\nlevel = "x"\n[providers.x]\napi_key = "${GONE}"\n')
    done = _run("check")
    assert done.exit_code == 1
    assert done.output.count("error ") == 4
    assert done.output.count("  fix: ") == 4
    assert "isthmus.toml:2: `server.prot` is not a known key" in done.output
    assert "did you mean `server.port`?" in done.output
    assert "export GONE=…" in done.output
    assert "4 errors: the gateway cannot start like this." in done.output


def test_check_as_json_is_for_programs() -> None:
    done = _run("check", "--json", "--set", "server.port=x", "--set", "server.host=0.0.0.0")
    assert done.exit_code == 1
    problems = json.loads(done.stdout)
    assert [(problem["severity"], problem["key"], problem["place"]) for problem in problems] == [
        ("error", "server.port", "flag"),
        ("warning", "server.host", "flag"),
    ]


@pytest.mark.parametrize("command", ["check", "print"])
def test_a_missing_or_broken_file_is_one_clear_line(command: str) -> None:
    done = _run(command, "--config", "gone.toml")
    assert done.exit_code == 1
    assert "gone.toml` named by `--config` does not exist" in done.stderr
    Path("broken.toml").write_text("a = [")
    done = _run(command, "--config", "broken.toml")
    assert done.exit_code == 1
    assert "not valid TOML" in done.stderr
    assert "Traceback" not in done.output


def test_print_is_toml_or_json_on_stdout_alone() -> None:
    done = _run("print", "--set", 'models.aliases."gpt-5.5"=demo/x', DEEPSEEK_API_KEY="SECRET")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    assert "SECRET" not in done.stdout
    values = tomllib.loads(done.stdout)
    assert values["models"]["aliases"] == {"gpt-5.5": "demo/x"}
    assert json.loads(_run("print", "--json").stdout)["server"]["port"] == 8484


def test_print_tells_origins() -> None:
    done = _run("print", "--origins", "--set", "log.level=debug", ISTHMUS_PORT="81")
    assert "port = 81  # environment: $ISTHMUS_PORT" in done.stdout
    assert 'level = "debug"  # flag' in done.stdout
    assert 'format = "text"  # default' in done.stdout


def test_print_of_a_wrong_configuration_still_prints_but_fails() -> None:
    done = _run("print", "--set", "server.port=x")
    assert done.exit_code == 1
    assert tomllib.loads(done.stdout)["server"]["port"] == 8484
    assert "`server.port` must be an integer" in done.stderr


def test_a_setting_needs_a_value() -> None:
    assert parse_settings(["a.b=c=d", " x = y"]) == {"a.b": "c=d", "x": " y"}
    with pytest.raises(ConfigError, match="has no value"):
        parse_settings(["a.b"])
    assert _run("check", "--set", "nonsense").exit_code == 1
