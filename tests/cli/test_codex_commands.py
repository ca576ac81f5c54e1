"""`isthmus codex setup`: shows what it will do, does that and nothing else, and takes it back."""

from __future__ import annotations

import json
import socket
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from codex_program import install
from isthmus.cli.commands import app
from isthmus.testing import ScriptedUpstream, reply
from screens import draw
from serving import running_gateway_server

OWN = '# my settings\nmodel = "gpt-5.5"\n\n[tui]\ntheme = "dark"'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "DEEPSEEK_API_KEY",
        "OPENAI_API_KEY",
        "ISTHMUS_API_KEY",
        "ISTHMUS_CONFIG",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(install(tmp_path).parent))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def isthmus(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(app, ["codex", "setup", *arguments], input=answer)


def said(done: Result) -> str:
    return " ".join(done.output.split())


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


def test_codex_is_told_to_use_websockets_and_undo_takes_that_back(home: Path) -> None:
    (home / "config.toml").write_text(OWN)
    assert isthmus("--websockets", "--yes").exit_code == 0
    written = tomllib.loads((home / "config.toml").read_text())
    assert written["model_providers"]["isthmus"]["supports_websockets"] is True
    assert "nothing to change" in isthmus("--websockets", "--yes").output
    assert isthmus("--yes").exit_code == 0
    assert "supports_websockets" not in (home / "config.toml").read_text()
    isthmus("--websockets", "--yes")
    assert isthmus("--undo", "--yes").exit_code == 0
    assert (home / "config.toml").read_text() == OWN


@pytest.mark.parametrize(
    ("config", "flags", "switched"),
    [
        ("", (), False),
        ('[search]\nbackend = "demo"\n', (), True),
        ('[search]\nbackend = "demo"\n', ("--no-search",), False),
        ("", ("--search",), True),
    ],
)
def test_a_search_engine_of_the_gateway_is_switched_on_and_undo_takes_that_back(
    home: Path, config: str, flags: tuple[str, ...], switched: bool
) -> None:
    (home.parent / "isthmus.toml").write_text(config)
    (home / "config.toml").write_text(OWN)
    done = isthmus("--yes", *flags)
    assert done.exit_code == 0, done.output
    written = tomllib.loads((home / "config.toml").read_text())
    ours = written["model_providers"]["isthmus"]
    assert (written.get("web_search") == "live") is switched
    assert ours.get("supports_standalone_web_search", False) is switched
    assert "nothing to change" in said(isthmus("--yes", *flags))
    assert isthmus("--undo", "--yes").exit_code == 0
    assert (home / "config.toml").read_text() == OWN


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


def test_a_running_gateway_that_wants_a_key_is_shown_the_one_of_the_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "open sesame")
    with running_gateway_server(
        '[server]\nport = 0\napi_keys = ["open sesame"]\n[store]\nurl = "memory:"\n'
    ) as gateway:
        assert isthmus("--url", gateway.url, "--yes").exit_code == 1
        done = isthmus("--url", gateway.url, "--key-env", "MY_KEY", "--yes")
    assert done.exit_code == 0, done.output
    assert "open sesame" not in (home / "config.toml").read_text() + done.output


@pytest.mark.parametrize("listing", [b"<html>", b"[]", b'{"models": 7}', b'{"models": [{}]}', b'{"data": "\xff"}'])
def test_what_does_not_answer_like_a_gateway_is_called_so(home: Path, listing: bytes) -> None:
    with ScriptedUpstream.running([reply(listing)]) as other:
        done = isthmus("--url", other.url, "--yes")
    assert done.exit_code == 1
    assert "is not an Isthmus gateway" in said(done)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--url", "http://127.0.0.1:9"), "no gateway answers at `http://127.0.0.1:9`: "),
        (("--model", "nowhere/x"), "not configured"),
        (("--model", "justaname"), "does not serve a model `justaname`; there is `demo/demo`"),
        (("--model", "demo-thinkin"), "did you mean `demo/demo-thinking`?"),
        (("--model", "demo/demo-thinkin"), "did you mean `demo/demo-thinking`?"),
        (("--profile", "../evil"), "cannot be a profile's name"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(home: Path, arguments: tuple[str, ...], words: str) -> None:
    done = isthmus(*arguments, "--yes")
    assert done.exit_code == 1
    assert words in said(done)
    assert list(home.iterdir()) == []


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("", 1), ("what\n", 1), ("y\n", 0), ("\n", 0)])
def test_an_answer_counts_from_a_pipe_too(home: Path, answer: str, code: int) -> None:
    done = isthmus(answer=answer)
    assert done.exit_code == code
    assert ("Nothing was written" in done.output) == (code == 1)
    assert (home / "config.toml").exists() == (code == 0)


def test_no_is_no_for_an_undo_too(home: Path) -> None:
    isthmus("--yes")
    before = (home / "config.toml").read_bytes()
    assert isthmus("--undo", answer="n\n").exit_code == 1
    assert (home / "config.toml").read_bytes() == before


CONFIG = """
[models]
default = "deepseek/deepseek-v4-pro"
aliases = { fast = "zhipu/glm-5.3", "*" = "zhipu/glm-5" }
[providers.deepseek]
api_key = "x"
[providers.zhipu]
api_key = "x"
[providers.openrouter]
api_key = "x"
[providers.ollama]
[providers.mine]
uses = "openai-compatible"
base_url = "http://127.0.0.1:1/v1"
[providers.elsewhere]
uses = "deepseek"
base_url = "http://127.0.0.1:1/v1"
api_key = "x"
"""


@pytest.mark.parametrize(
    "model",
    [
        *("fast", "deepseek/deepseek-flash", "deepseek/deepseek-v4-flash-0901", "openrouter/meta-llama/llama-5"),
        *("ollama/my-own", "mine/anything", "elsewhere/finetune-7"),
    ],
)
def test_what_the_gateway_serves_may_be_named(home: Path, model: str) -> None:
    Path("isthmus.toml").write_text(CONFIG)
    done = isthmus("--model", model, "--yes")
    assert done.exit_code == 0, done.output
    assert tomllib.loads((home / "config.toml").read_text())["model"] == model


@pytest.mark.parametrize(
    ("model", "near"),
    [
        ("fats", "fast"),
        ("justaname", "there is `deepseek/deepseek-v4-pro`, `fast`"),
        ("deepseek-v4-por", "deepseek/deepseek-v4-pro"),
        ("deepseek/deepseek-v4-por", "deepseek/deepseek-v4-pro"),
        ("zhipu/glm5.3", "zhipu/glm-5.3"),
        ("deepsek/deepseek-v4-pro", "deepseek/deepseek-v4-pro"),
    ],
)
def test_a_model_that_nobody_serves_is_refused_with_the_nearest_one(home: Path, model: str, near: str) -> None:
    Path("isthmus.toml").write_text(CONFIG)
    done = isthmus("--model", model, "--yes")
    assert done.exit_code == 1
    assert near in said(done)
    assert list(home.iterdir()) == []


def test_a_file_that_is_not_toml_is_one_line_with_the_place(home: Path) -> None:
    config = home / "config.toml"
    config.write_text('model = "x"\n[tui\n')
    done = isthmus("--yes")
    assert done.exit_code == 1
    assert f"`{config}` is not valid TOML at line 2" in said(done)
    assert done.output.count("\n") == 1
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_a_provider_of_our_name_is_named_at_its_line_in_the_users_file(home: Path) -> None:
    config = home / "config.toml"
    config.write_text('[model_providers.isthmus]\nname = "Mine"\n')
    done = isthmus("--yes")
    assert done.exit_code == 1
    assert f"`{config}` has a provider `isthmus` of its own at line 2" in said(done)
    assert config.read_text() == '[model_providers.isthmus]\nname = "Mine"\n'


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="a folder that not even root can write to")
@pytest.mark.parametrize("where", ["/sys", "/sys/codex"])
def test_a_read_only_home_is_one_clear_line(home: Path, where: str) -> None:
    done = isthmus("--codex-home", where, "--yes")
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    line = done.output.splitlines()[-1]
    assert line.startswith("error: `/sys")
    assert "cannot be written" in line
    assert line.endswith("nothing was changed")


def test_when_one_file_cannot_be_written_the_other_is_taken_back(home: Path) -> None:
    (home / "config.toml").symlink_to("/proc/self/no/such/place")
    done = isthmus("--yes")
    assert done.exit_code == 1
    assert "nothing was changed" in said(done)
    assert [path.name for path in home.iterdir()] == ["config.toml"]


def test_a_linked_configuration_stays_a_link_and_keeps_mode_and_line_ends(home: Path, tmp_path: Path) -> None:
    real, own = tmp_path / "dotfiles.toml", OWN.replace("\n", "\r\n").encode()
    real.write_bytes(own)
    real.chmod(0o604)
    (home / "config.toml").symlink_to(real)
    assert isthmus("--yes").exit_code == 0
    assert (home / "config.toml").is_symlink()
    assert b"model_provider" in real.read_bytes()
    assert b"\n" not in real.read_bytes().replace(b"\r\n", b"")
    assert real.stat().st_mode & 0o777 == 0o604
    assert isthmus("--undo", "--yes").exit_code == 0
    assert (home / "config.toml").is_symlink()
    assert real.read_bytes() == own


def test_a_file_that_changes_while_we_ask_is_not_overwritten(home: Path) -> None:
    from isthmus.cli.changes import Change, carry_out
    from isthmus.errors import ConfigError

    (home / "config.toml").write_text("# Codex was here\n")
    with pytest.raises(ConfigError, match="changed in the meantime"):
        carry_out([Change(home / "config.toml", "# before\n", "# after\n")])
    assert (home / "config.toml").read_text() == "# Codex was here\n"


def test_what_codex_wrote_survives_another_setup_and_the_undo(home: Path) -> None:
    config = home / "config.toml"
    config.write_text(OWN)
    isthmus("--yes")
    config.write_text(config.read_text() + '\n[mcp_servers.docs]\ncommand = "npx"\n')
    assert isthmus("--model", "demo/demo-thinking", "--yes").exit_code == 0
    assert tomllib.loads(config.read_text())["mcp_servers"] == {"docs": {"command": "npx"}}
    assert isthmus("--undo", "--yes").exit_code == 0
    assert config.read_text() == OWN + '\n\n[mcp_servers.docs]\ncommand = "npx"\n'
    assert [path.name for path in home.iterdir()] == ["config.toml"]


@pytest.mark.parametrize("arguments", [(), ("--undo",)], ids=["setup", "undo"])
@pytest.mark.parametrize("linked", [False, True], ids=["socket", "link"])
def test_a_running_daemon_is_named_with_the_command_that_ends_it(
    home: Path, short_folder: Path, arguments: tuple[str, ...], linked: bool
) -> None:
    codex = short_folder / "codex"
    control = codex / "app-server-control"
    control.mkdir(parents=True)
    place = control / "app-server-control.sock"
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(short_folder / "elsewhere" if linked else place))
        if linked:
            place.symlink_to(short_folder / "elsewhere")
        daemon.listen(1)
        done = isthmus(*arguments, "--yes", "--codex-home", str(codex))
        assert done.exit_code == 0
        assert f"\n  CODEX_HOME={codex} codex app-server daemon stop\n" in done.stderr
        screen = draw(["codex", "setup", *arguments, "--yes", "--codex-home", str(codex)], 70)
        assert f"CODEX_HOME={codex} codex app-server daemon stop" in screen.lines[-1]
        assert screen.wider_than(70) == []
    quiet = isthmus(*arguments, "--yes", "--codex-home", str(codex))
    assert "daemon" not in quiet.output  # the socket is still there, and nobody behind it


def test_the_usual_home_needs_no_variable_in_the_command(
    home: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(short_folder))
    (short_folder / "app-server-control").mkdir()
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(str(short_folder / "app-server-control" / "s.sock"))
        daemon.listen(1)
        assert "\n  codex app-server daemon stop\n" in isthmus("--yes").output


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """The path of a socket has room for about a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="cx") as folder:
        yield Path(folder)
