"""`isthmus claude setup`: shows what it will do, does that and nothing else, and takes it back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from claude_program import install
from isthmus.cli.commands import app
from isthmus.testing import ScriptedUpstream, reply
from serving import running_gateway_server

OWN = '{\n  "model": "opus",\n  "env": { "EDITOR": "vi" },\n  "later": {"unknown": [1, 2]}\n}'

CONFIG = """
[models]
default = "deepseek/deepseek-v4-pro"
aliases = { fast = "zhipu/glm-5.3" }
[providers.deepseek]
api_key = "x"
[providers.zhipu]
api_key = "x"
"""
GATEWAY = '[server]\nport = 0\n[store]\nurl = "memory:"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY", "ISTHMUS_CONFIG", "ISTHMUS_API_KEY", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claude").mkdir()
    install(tmp_path / "bin")
    return tmp_path / "claude"


def isthmus(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["claude", "setup", *arguments], input=answer)


def said(done: Result) -> str:
    return " ".join(done.output.split())


def variables(home: Path) -> dict[str, str]:
    written: dict[str, Any] = json.loads((home / "settings.json").read_text())
    env: dict[str, str] = written["env"]
    return env


def names(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir())


def test_setup_writes_the_variables_and_undo_leaves_no_trace(home: Path) -> None:
    file = home / "settings.json"
    file.write_text(OWN)
    file.chmod(0o640)
    done = isthmus("--yes")
    assert done.exit_code == 0, done.output
    assert '"ANTHROPIC_MODEL": "demo/demo"' in done.output
    assert "isthmus serve" in done.output
    written = json.loads(file.read_text())
    assert (written["model"], written["later"], written["env"]["EDITOR"]) == ("opus", {"unknown": [1, 2]}, "vi")
    assert written["env"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8484"
    assert (home / "settings.json.before-isthmus").read_text() == OWN
    assert (home / "isthmus-setup.json").stat().st_mode & 0o777 == 0o600
    assert file.stat().st_mode & 0o777 == 0o640
    undone = isthmus("--undo", "--yes")
    assert undone.exit_code == 0, undone.output
    assert file.read_text() == OWN
    assert names(home) == ["settings.json"]


def test_every_variable_that_decides_which_model_answers_names_one_of_ours(home: Path) -> None:
    Path("isthmus.toml").write_text(CONFIG)
    assert isthmus("--model", "fast", "--small-model", "deepseek/deepseek-flash", "--yes").exit_code == 0
    env = variables(home)
    models = {name: value for name, value in env.items() if name.endswith("_MODEL")}
    assert models == {
        "ANTHROPIC_MODEL": "fast",
        "ANTHROPIC_DEFAULT_OPUS_MODEL": "fast",
        "ANTHROPIC_DEFAULT_SONNET_MODEL": "fast",
        "ANTHROPIC_DEFAULT_FABLE_MODEL": "fast",
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": "deepseek/deepseek-flash",
        "ANTHROPIC_SMALL_FAST_MODEL": "deepseek/deepseek-flash",
    }
    assert env["CLAUDE_CODE_ATTRIBUTION_HEADER"] == "0"
    assert env["CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY"] == "1"


OWN_MODELS = """
[models]
default = "mine/wide"
[providers.mine]
uses = "openai-compatible"
base_url = "http://127.0.0.1:1/v1"
[providers.mine.models.wide]
limits = { context = 262144, output = 8192 }
[providers.mine.models.narrow]
limits = { context = 16384, output = 16384 }
"""


@pytest.mark.parametrize(
    ("model", "window", "output"),
    [("mine/wide", "262144", "8192"), ("mine/narrow", "16384", "4096"), ("mine/unknown", "128000", "32000")],
)
def test_window_and_output_are_those_of_the_model(home: Path, model: str, window: str, output: str) -> None:
    Path("isthmus.toml").write_text(OWN_MODELS)
    done = isthmus("--model", model, "--yes")
    assert done.exit_code == 0, done.output
    env = variables(home)
    assert (env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"], env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) == (window, output)
    assert ("window of 16,384 tokens" in said(done)) == (model == "mine/narrow")


def test_without_settings_a_file_is_made_and_undo_removes_it(home: Path) -> None:
    assert isthmus("--yes").exit_code == 0
    assert names(home) == ["isthmus-setup.json", "settings.json"]
    assert isthmus("--undo", "--yes").exit_code == 0
    assert names(home) == []
    assert "Nothing to undo" in isthmus("--undo", "--yes").output


def test_a_dry_run_writes_nothing(home: Path) -> None:
    done = isthmus("--dry-run")
    assert done.exit_code == 0
    assert '+    "ANTHROPIC_BASE_URL": "http://127.0.0.1:8484",' in done.output
    assert names(home) == []


def test_setting_up_twice_changes_nothing_the_second_time_and_another_model_only_the_model(home: Path) -> None:
    file = home / "settings.json"
    file.write_text(OWN)
    isthmus("--yes")
    assert "nothing to change" in isthmus("--yes").output
    assert isthmus("--model", "demo/demo-thinking", "--yes").exit_code == 0
    assert variables(home)["ANTHROPIC_MODEL"] == "demo/demo-thinking"
    assert (home / "settings.json.before-isthmus").read_text() == OWN
    isthmus("--undo", "--yes")
    assert file.read_text() == OWN


def test_what_claude_code_wrote_survives_another_setup_and_the_undo(home: Path) -> None:
    file = home / "settings.json"
    file.write_text(OWN)
    isthmus("--yes")
    written = json.loads(file.read_text())
    written["permissions"] = {"allow": ["Bash(ls)"]}
    file.write_text(json.dumps(written, indent=2))
    assert isthmus("--model", "demo/demo-thinking", "--yes").exit_code == 0
    assert json.loads(file.read_text())["permissions"] == {"allow": ["Bash(ls)"]}
    assert isthmus("--undo", "--yes").exit_code == 0
    assert json.loads(file.read_text()) == {**json.loads(OWN), "permissions": {"allow": ["Bash(ls)"]}}


def test_a_key_of_the_users_is_put_aside_shown_to_nobody_and_comes_back(home: Path) -> None:
    file = home / "settings.json"
    text = '{"env": {"ANTHROPIC_API_KEY": "sk-ant-mine", "ANTHROPIC_AUTH_TOKEN": "tok-mine"}}'
    file.write_text(text)
    done = isthmus("--yes", "--key", "sk-gateway")
    assert variables(home)["ANTHROPIC_API_KEY"] == ""
    assert variables(home)["ANTHROPIC_AUTH_TOKEN"] == "sk-gateway"
    undone = isthmus("--undo", "--yes")
    assert file.read_text() == text
    assert not [key for key in ("sk-ant-mine", "tok-mine", "sk-gateway") if key in done.output + undone.output]


def test_a_running_gateway_is_asked_for_its_models_and_their_limits(home: Path) -> None:
    models = OWN_MODELS.replace('default = "mine/wide"', 'default = "mine/wide"\ndemo = false')
    with running_gateway_server(GATEWAY + models) as gateway:
        done = isthmus("--gateway", f"{gateway.url}/v1/", "--yes")
        assert done.exit_code == 0, done.output
        wrong = isthmus("--gateway", gateway.url, "--model", "nope", "--yes")
    env = variables(home)
    assert (env["ANTHROPIC_BASE_URL"], env["ANTHROPIC_MODEL"]) == (gateway.url, "mine/wide")
    assert (env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"], env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]) == ("262144", "8192")
    assert "isthmus serve" not in done.output
    assert wrong.exit_code == 1
    assert "mine/wide" in wrong.output


@pytest.mark.parametrize("by", ["option", "variable"])
def test_a_running_gateway_that_wants_a_key_gets_it(home: Path, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    with running_gateway_server(GATEWAY.replace("port = 0", 'port = 0\napi_keys = ["open sesame"]')) as gateway:
        assert isthmus("--gateway", gateway.url, "--yes").exit_code == 1
        if by == "variable":
            monkeypatch.setenv("ISTHMUS_API_KEY", "open sesame")
        done = isthmus("--gateway", gateway.url, *(("--key", "open sesame") if by == "option" else ()), "--yes")
    assert done.exit_code == 0, done.output
    assert variables(home)["ANTHROPIC_AUTH_TOKEN"] == "open sesame"
    assert "open sesame" not in done.output


@pytest.mark.parametrize("listing", [b"<html>", b"[]", b'{"models": 7}', b'{"models": [{}]}'])
def test_what_does_not_answer_like_a_gateway_is_called_so(home: Path, listing: bytes) -> None:
    with ScriptedUpstream.running([reply(listing)]) as other:
        done = isthmus("--gateway", other.url, "--yes")
    assert done.exit_code == 1
    assert "is not an Isthmus gateway" in said(done)
    assert names(home) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--gateway", "http://127.0.0.1:9"), "no gateway answers at `http://127.0.0.1:9`: "),
        (("--model", "nowhere/x"), "not configured"),
        (("--model", "demo/demo-thinkin"), "did you mean `demo/demo-thinking`?"),
        (("--small-model", "justaname"), "does not serve a model `justaname`"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(home: Path, arguments: tuple[str, ...], words: str) -> None:
    done = isthmus(*arguments, "--yes")
    assert done.exit_code == 1
    assert words in said(done)
    assert names(home) == []


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ('api_keys = ["a key"]', "give one of them with `--key -`"),
        ('unix_socket = "/tmp/x.sock"', "cannot speak to a Unix socket"),
    ],
)
def test_a_gateway_that_claude_code_could_not_reach_is_not_written(home: Path, server: str, words: str) -> None:
    Path("isthmus.toml").write_text(f"[server]\n{server}\n")
    done = isthmus("--yes")
    assert done.exit_code == 1
    assert words in said(done)
    assert names(home) == []


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("", 1), ("what\n", 1), ("y\n", 0), ("\n", 0)])
def test_an_answer_counts_from_a_pipe_too(home: Path, answer: str, code: int) -> None:
    done = isthmus(answer=answer)
    assert done.exit_code == code
    assert ("Nothing was written" in done.output) == (code == 1)
    assert (home / "settings.json").exists() == (code == 0)


def test_no_is_no_for_an_undo_too(home: Path) -> None:
    isthmus("--yes")
    before = (home / "settings.json").read_bytes()
    assert isthmus("--undo", answer="n\n").exit_code == 1
    assert (home / "settings.json").read_bytes() == before
    assert (home / "isthmus-setup.json").exists()


@pytest.mark.parametrize("arguments", [(), ("--undo",)], ids=["setup", "undo"])
def test_a_file_that_is_not_json_is_one_line_with_the_place(home: Path, arguments: tuple[str, ...]) -> None:
    file = home / "settings.json"
    isthmus("--yes")
    file.write_text('{\n  // mine\n  "a": 1\n}')
    done = isthmus(*arguments, "--yes")
    assert done.exit_code == 1
    assert f"`{file}` is not valid JSON at line 2" in said(done)
    assert done.output.count("\n") == 1
    assert file.read_text() == '{\n  // mine\n  "a": 1\n}'


def test_a_record_that_cannot_be_read_is_named_with_the_way_out(home: Path) -> None:
    (home / "settings.json").write_text(OWN)
    isthmus("--yes")
    (home / "isthmus-setup.json").write_text("{")
    done = isthmus("--undo", "--yes")
    assert done.exit_code == 1
    assert "isthmus-setup.json` cannot be understood" in said(done)
    assert "settings.json.before-isthmus" in said(done)


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="a folder that not even root can write to")
@pytest.mark.parametrize("where", ["/sys", "/sys/claude"])
def test_a_read_only_home_is_one_clear_line(home: Path, where: str) -> None:
    done = isthmus("--claude-home", where, "--yes")
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    line = done.output.splitlines()[-1]
    assert line.startswith("error: `/sys")
    assert "cannot be written" in line
    assert line.endswith("nothing was changed")


def test_when_the_settings_cannot_be_written_the_record_is_taken_back(home: Path) -> None:
    (home / "settings.json").symlink_to("/proc/self/no/such/place")
    done = isthmus("--yes")
    assert done.exit_code == 1
    assert "nothing was changed" in said(done)
    assert names(home) == ["settings.json"]


def test_linked_settings_stay_a_link_and_keep_mode_and_line_ends(home: Path, tmp_path: Path) -> None:
    real, own = tmp_path / "dotfiles.json", OWN.replace("\n", "\r\n").encode()
    real.write_bytes(own)
    real.chmod(0o604)
    (home / "settings.json").symlink_to(real)
    assert isthmus("--yes").exit_code == 0
    assert (home / "settings.json").is_symlink()
    assert b"ANTHROPIC_BASE_URL" in real.read_bytes()
    assert real.stat().st_mode & 0o777 == 0o604
    assert isthmus("--undo", "--yes").exit_code == 0
    assert (home / "settings.json").is_symlink()
    assert real.read_bytes() == own


def test_without_the_program_the_setup_is_done_and_how_to_get_it_is_told(home: Path, tmp_path: Path) -> None:
    (tmp_path / "bin" / "claude").unlink()
    done = isthmus("--yes")
    assert done.exit_code == 0
    assert "npm install -g @anthropic-ai/claude-code" in said(done)
    assert (home / "settings.json").exists()


@pytest.mark.parametrize(
    ("version", "words"),
    [("2.1.325 (Claude Code)", ""), ("2.0.76 (Claude Code)", "older than"), ("hello", "does not answer like")],
)
def test_an_old_program_is_told_of(home: Path, tmp_path: Path, version: str, words: str) -> None:
    install(tmp_path / "bin", version)
    done = isthmus("--yes")
    assert done.exit_code == 0
    if words:
        assert words in said(done)
    else:
        assert said(done).endswith("isthmus doctor says what is wrong.")
