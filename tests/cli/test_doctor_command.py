"""`isthmus doctor`: everything is looked at, what is wrong is named with what to do, and no secret is shown."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import claude_program
import codex_program
from isthmus import __version__
from isthmus.cli.commands import app
from isthmus.testing import ScriptedUpstream, error, reply
from local_servers import at, ollama
from on_terminal import Terminal
from serving import GatewayThread, running_gateway_server

KEY = "ik-open-sesame-0123456789"
SECRET = "sk-provider-secret-987654321"
GATEWAY = f'[server]\nport = 0\napi_keys = ["{KEY}"]\n[store]\nurl = "memory:"\n'
MAIN = "from isthmus.cli.main import main; main()"


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayThread]:
    with running_gateway_server(GATEWAY) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.endswith("_API_KEY") or name.startswith(("ISTHMUS_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("CODEX_HOME", "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    at(tmp_path)
    write(tmp_path)
    return tmp_path


def write(home: Path, more: str = "", *, port: int | None = None, server: str = "") -> None:
    file = home / "isthmus.toml"
    file.write_text(
        f'[server]\nport = {port or free_port()}\n{server}\n[store]\nurl = "sqlite:{home}/store.db"\n{more}'
    )
    file.chmod(0o600)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def doctor(*arguments: str, typed: str | None = None) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments], input=typed)


def findings(*arguments: str, area: str = "", check: str = "") -> list[dict[str, Any]]:
    done = doctor("--json", *arguments)
    told = json.loads(done.stdout)
    assert done.exit_code == (1 if told["summary"]["problem"] else 0)
    return [each for each in told["findings"] if area in ("", each["area"]) and check in ("", each["check"])]


def said(done: Result) -> str:
    return " ".join(done.output.split())


def test_with_nothing_set_up_nothing_is_wrong_and_the_demo_is_told_of(home: Path) -> None:
    done = doctor()
    assert done.exit_code == 0, done.output
    assert "Nothing is wrong, 1 warning." in done.output.splitlines()[-1]
    assert "only the built-in demo model answers → isthmus init sets a provider up" in said(done)
    assert f"Isthmus {__version__} on Python" in done.output
    assert doctor("--strict").exit_code == 1  # a warning counts then


def test_a_server_of_this_machine_is_noticed_as_a_gateway_would(home: Path) -> None:
    with ScriptedUpstream.running(routes=ollama("qwen3:8b")) as upstream:
        at(home, ollama=upstream.base_url)
        done = doctor()
        assert findings("--offline", area="providers")[0]["facts"]["providers"] == ["demo"], "nobody is looked for"
    assert "ollama: no key, and none is needed" in said(done)
    assert f"ollama ({upstream.base_url}) lists 1 model" in said(done)
    assert "only the built-in demo model answers" not in said(done)


def test_the_json_has_the_documented_shape(home: Path) -> None:
    told = json.loads(doctor("--json").stdout)
    assert list(told) == ["shape", "isthmus", "ok", "summary", "findings", "seconds"]
    assert (told["shape"], told["isthmus"], told["ok"]) == (1, __version__, True)
    assert list(told["summary"]) == ["ok", "warning", "problem", "skipped"]
    assert sum(told["summary"].values()) == len(told["findings"])
    areas = ["versions", "configuration", "keys", "providers", "port", "store", "traces", "limits"]
    assert list(dict.fromkeys(each["area"] for each in told["findings"])) == [*areas, "codex", "claude code"]
    assert list(told["seconds"]) == [*areas, "codex", "claude code"]
    for each in told["findings"]:
        assert list(each) == ["area", "check", "state", "found", "remedy", "facts"]


def test_looking_makes_nothing(home: Path) -> None:
    before = sorted(path.relative_to(home) for path in home.rglob("*"))
    doctor()
    assert sorted(path.relative_to(home) for path in home.rglob("*")) == before


def test_what_is_wrong_in_the_configuration_is_named_with_its_fix(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, '[log]\nlevel = "loud"\n')
    monkeypatch.setenv("ISTHMUS_PROT", "3")
    file, *others = findings(area="configuration")
    assert (file["state"], file["facts"]["errors"], file["facts"]["warnings"]) == ("problem", 1, 1)
    assert [(each["check"], each["state"]) for each in others] == [("setting", "problem"), ("variable", "warning")]
    assert others[0]["facts"]["key"] == "log.level"
    assert others[1]["remedy"] == "did you mean `ISTHMUS_PORT`?"


def test_a_configuration_that_is_no_toml_hides_nothing_else(home: Path) -> None:
    (home / "isthmus.toml").write_text("[server\n")
    (found,) = findings(area="configuration")
    assert (found["state"], found["remedy"]) == ("problem", "correct that line")
    assert findings(area="codex")


def test_a_gateway_that_others_reach_without_a_key_is_warned_of(home: Path) -> None:
    (home / "isthmus.toml").write_text('[server]\nhost = "0.0.0.0"\n')
    (found,) = findings("--offline", area="configuration", check="open")
    assert found["state"] == "warning"
    assert "isthmus keys create" in found["remedy"]


LISTED = reply({"object": "list", "data": [{"id": "a", "object": "model"}]})
PROVIDERS = """
[models]
demo = false
default = "mine/a"
[providers.mine]
uses = "openai-compatible"
base_url = "{url}"
api_key = "{key}"
ask = true
"""


@pytest.mark.parametrize(
    ("step", "verdict", "state"),
    [
        (lambda asked: LISTED if "authorization" in asked.headers else error(401, "no key"), "ready", "ok"),
        (LISTED, "unproven", "ok"),
        (error(401, f"bad key {SECRET}"), "key_refused", "problem"),
        (error(503, "overloaded"), "failing", "warning"),
    ],
)
def test_a_provider_is_asked_and_its_key_is_tried(home: Path, step: Any, verdict: str, state: str) -> None:
    with ScriptedUpstream.running(routes={"/v1/models": step}) as upstream:
        write(home, PROVIDERS.format(url=upstream.base_url, key=SECRET))
        done = doctor("--json")
        assert upstream.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    told = json.loads(done.stdout)
    (found,) = [each for each in told["findings"] if each["area"] == "providers"]
    assert (found["facts"]["provider"], found["facts"]["verdict"], found["state"]) == ("mine", verdict, state)
    assert SECRET not in done.output
    (key,) = [each for each in told["findings"] if each["check"] == "provider_key"]
    assert key["facts"] == {"provider": "mine", "key": "in the file"}


def test_where_a_key_comes_from_is_told_and_a_missing_one_names_its_variable(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, "[providers.deepseek]\n[providers.mistral]\n")
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    done = doctor("--offline")
    assert "deepseek: key from the variable DEEPSEEK_API_KEY" in said(done)
    assert "mistral: its key is missing → set MISTRAL_API_KEY" in said(done)
    assert SECRET not in done.output


def test_nobody_is_asked_offline(home: Path, gateway: GatewayThread) -> None:
    with ScriptedUpstream.running(default=error(500, "nobody is to come here")) as upstream:
        write(home, PROVIDERS.format(url=upstream.base_url, key=SECRET), port=int(upstream.url.rpartition(":")[2]))
        setup("codex", "--gateway", upstream.url)
        setup("claude", "--gateway", upstream.url)
        done = doctor("--offline", "--gateway", upstream.url, "--key", KEY)
        assert upstream.requests == []
    skipped = [line for line in done.output.splitlines() if "skipped" in line]
    assert len(skipped) == 6  # provider, port, both coding agents, the gateway; and the sum
    assert done.exit_code == 0, done.output


def setup(agent: str, *arguments: str) -> None:
    done = CliRunner().invoke(app, [agent, "setup", "--no-check", "--model", "demo/demo", "--yes", *arguments])
    assert done.exit_code == 0, done.output


# ── the port ───────────────────────────────────────────────────────────────────────────────────────


def test_a_port_is_free_a_gateways_or_somebody_elses(home: Path, gateway: GatewayThread) -> None:
    (free,) = findings(area="port")
    assert (free["state"], free["facts"]["used_by"]) == ("ok", None)
    write(home, port=int(gateway.url.rpartition(":")[2]))
    ours, ready = findings(area="port")
    assert (ours["state"], ours["facts"]["used_by"], ours["facts"]["version"]) == ("ok", "isthmus", __version__)
    assert (ready["check"], ready["state"]) == ("ready", "skipped")  # this configuration has no key of it
    write(home, port=int(gateway.url.rpartition(":")[2]), server=f'api_keys = ["{KEY}"]')
    assert [each["state"] for each in findings(area="port")] == ["ok", "ok"]
    with ScriptedUpstream.running(default=reply(b"hello")) as other:
        port = int(other.url.rpartition(":")[2])
        write(home, port=port)
        (taken,) = findings(area="port")
    assert (taken["state"], taken["facts"]["used_by"]) == ("problem", "another program")
    assert f"isthmus serve --port {port + 1}" in taken["remedy"]


def test_a_gateway_of_another_version_is_told_of(home: Path) -> None:
    with ScriptedUpstream.running(default=reply({"name": "isthmus", "version": "0.0.1", "status": "ready"})) as old:
        write(home, port=int(old.url.rpartition(":")[2]))
        found, _ = findings(area="port")
    assert found["state"] == "warning"
    assert "end it and start it anew" in found["remedy"]


def test_a_key_that_somebody_repeats_is_not_shown(home: Path) -> None:
    told = {"status": "degraded", "providers": {"mine": f"refused {SECRET}"}}
    welcome = reply({"name": "isthmus", "version": __version__})
    with ScriptedUpstream.running(routes={"/": welcome, "/ready": reply(told)}) as gateway:
        provider = PROVIDERS.format(url="http://127.0.0.1:9/v1", key=SECRET)
        write(home, provider, port=int(gateway.url.rpartition(":")[2]))
        shown, printed = doctor("--json"), doctor()
    assert "refused <redacted>" in shown.stdout
    assert "refused <redacted>" in printed.output
    assert SECRET not in shown.output + printed.output


# ── stores ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_store_is_there_whole_damaged_of_a_newer_version_or_another_programs(home: Path) -> None:
    (missing,) = findings(area="store")
    assert (missing["state"], "yet: the gateway makes it" in missing["found"]) == ("ok", True)
    with running_gateway_server(f'[server]\nport = 0\n[store]\nurl = "sqlite:{home}/store.db"\n'):
        pass
    store, damage = findings(area="store")
    assert (store["state"], damage["state"]) == ("ok", "ok")
    assert store["facts"]["schema"].startswith("00")
    assert (store["facts"]["missing"], store["facts"]["bytes"] > 0) == ([], True)
    with sqlite3.connect(home / "store.db") as connection:
        connection.execute("INSERT INTO isthmus_migrations (name, applied_at) VALUES ('9999_later', 0)")
    connection.close()
    (newer,) = findings(area="store")
    assert newer["state"] == "problem"
    assert "upgrade Isthmus" in newer["remedy"]
    (home / "store.db").write_bytes(b"no database at all, but words and words" * 100)
    (other,) = findings(area="store")
    assert other["state"] == "problem"


def test_a_damaged_page_is_found(home: Path) -> None:
    with running_gateway_server(f'[server]\nport = 0\n[store]\nurl = "sqlite:{home}/store.db"\n'):
        pass
    file = home / "store.db"
    content = bytearray(file.read_bytes())
    content[4096 * 3 : 4096 * 8] = b"\x5a" * (4096 * 5)
    file.write_bytes(content)
    assert "problem" in {each["state"] for each in findings(area="store")}


def test_traces_are_told_of_and_what_is_none_is_a_problem(home: Path) -> None:
    (none,) = findings(area="traces")
    assert (none["state"], none["facts"]["path"]) == ("ok", str(home / "store.traces.db"))
    (home / "store.traces.db").write_bytes(b"not a database, nor anything like it" * 100)
    (broken,) = findings(area="traces")
    assert broken["state"] == "problem"


# ── coding agents ──────────────────────────────────────────────────────────────────────────────────


def install(home: Path, version: str = "codex-cli 0.166.0") -> None:
    program = codex_program.install(home / "bin")
    program.write_text(f"#!/bin/sh\necho '{version}'\n")
    claude_program.install(home / "bin")


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if `openai-codex-cli-bin` were not installed."""
    monkeypatch.setitem(sys.modules, "codex_cli_bin", None)


@pytest.mark.usefixtures("no_bundle")
def test_programs_are_found_with_their_versions(home: Path) -> None:
    (codex, _), (claude, _) = findings(area="codex"), findings(area="claude code")
    assert (codex["facts"]["path"], claude["facts"]["path"]) == (None, None)
    assert (codex["state"], claude["state"]) == ("ok", "ok")  # nobody has to have them
    install(home)
    (codex, _), (claude, _) = findings(area="codex"), findings(area="claude code")
    assert (codex["facts"]["version"], codex["state"]) == ("0.166.0", "ok")
    assert (claude["facts"]["version"], claude["state"]) == ("2.1.325", "ok")
    install(home, "codex-cli 0.99.1")
    (codex, _) = findings(area="codex")
    assert (codex["state"], "older than" in codex["found"]) == ("warning", True)


@pytest.mark.usefixtures("no_bundle")
@pytest.mark.parametrize("agent", ["codex", "claude"])
def test_a_coding_agent_is_followed_to_its_gateway_with_its_key(home: Path, gateway: GatewayThread, agent: str) -> None:
    install(home)
    area = {"codex": "codex", "claude": "claude code"}[agent]
    setup(agent, "--gateway", gateway.url, "--key", KEY)
    _, config, reached = findings(area=area)
    assert (config["facts"]["address"], config["facts"]["this_gateway"]) == (gateway.url, False)
    assert (reached["check"], reached["state"], reached["facts"]["model"]) == ("gateway", "ok", "demo/demo")
    setup(agent, "--gateway", gateway.url, "--key", "wrong-0123456789")
    refused = findings(area=area)[-1]
    assert (refused["state"], refused["facts"]["code"]) == ("problem", "gateway_key_refused")
    setup(agent, "--gateway", "http://127.0.0.1:9")
    away = findings(area=area)[-1]
    assert (away["state"], away["facts"]["code"]) == ("problem", "gateway_unreachable")
    assert away["remedy"] == "start it with `isthmus serve --port 9`"
    done = doctor()
    assert KEY not in done.output
    assert "wrong-" not in done.output
    lines = done.output.splitlines()
    assert lines[-2:] == ["What to do:", f"  {area}: start it with isthmus serve --port 9"]


@pytest.mark.usefixtures("no_bundle")
@pytest.mark.parametrize(
    ("agent", "cut", "words"),
    [
        ("codex", 'model_provider = "isthmus"', "Codex goes past the gateway"),
        ("codex", 'wire_api = "responses"', "is not whole"),
        ("claude", '"ANTHROPIC_BASE_URL": "http://127.0.0.1:9",', "Claude Code goes past the gateway"),
        ("claude", '"CLAUDE_CODE_ATTRIBUTION_HEADER": "0"', "is not what the setup wrote"),
    ],
)
def test_a_block_of_ours_that_is_not_whole_is_told_of(home: Path, agent: str, cut: str, words: str) -> None:
    install(home)
    setup(agent, "--gateway", "http://127.0.0.1:9")
    file = home / {"codex": ".codex/config.toml", "claude": ".claude/settings.json"}[agent]
    text = file.read_text()
    assert cut in text
    file.write_text(re.sub(r",(\s*})", r"\1", text.replace(cut, "")))
    _, found = findings(area={"codex": "codex", "claude": "claude code"}[agent])
    assert found["state"] == "problem"
    assert words in found["found"]
    assert found["remedy"] == f"run `isthmus {agent} setup` again"


@pytest.mark.usefixtures("no_bundle")
def test_a_catalogue_that_is_gone_a_variable_that_is_not_set_and_a_daemon_are_told_of(
    home: Path, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(home)
    setup("codex", "--gateway", gateway.url, "--key-env", "MINE")
    key = findings(area="codex")[-1]
    assert (key["check"], key["state"], key["remedy"]) == ("key", "problem", "`export MINE=…` before `codex`")
    monkeypatch.setenv("MINE", KEY)
    assert findings(area="codex")[-1]["state"] == "ok"
    (home / ".codex" / "isthmus-models.json").unlink()
    assert "Codex refuses to start" in findings(area="codex")[-1]["found"]
    control = home / ".codex" / "app-server-control"
    control.mkdir()
    with tempfile.TemporaryDirectory(prefix="cx") as short, socket.socket(socket.AF_UNIX) as daemon:
        daemon.bind(f"{short}/s.sock")
        (control / "s.sock").symlink_to(f"{short}/s.sock")  # as Codex does where its own path is too long
        daemon.listen(5)
        (running,) = findings(area="codex", check="daemon")
    assert (running["state"], running["remedy"]) == ("warning", "`codex app-server daemon stop`")


# ── a gateway elsewhere ────────────────────────────────────────────────────────────────────────────


def test_a_gateway_elsewhere_is_looked_at_with_its_key(home: Path, gateway: GatewayThread) -> None:
    reached, ready = findings("--gateway", gateway.url, "--key", KEY, area="gateway")
    assert (reached["state"], reached["facts"]["version"]) == ("ok", __version__)
    assert ready["state"] == "ok"
    (missing,) = findings("--gateway", gateway.url, area="gateway")
    assert (missing["state"], missing["facts"]["code"]) == ("problem", "gateway_key_missing")
    (nobody,) = findings("--gateway", "http://127.0.0.1:9", "--key", KEY, area="gateway")
    assert (nobody["state"], nobody["facts"]["code"]) == ("problem", "gateway_unreachable")
    (wrong,) = findings("--gateway", "nonsense", area="gateway")
    assert wrong["state"] == "problem"


def test_a_gateway_that_never_answers_is_given_up_in_time(home: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = findings("--gateway", url, "--key", KEY, "--timeout", "0.3", area="gateway")[0]
    assert found["state"] == "problem"
    assert found["facts"].get("code") == "gateway_unreachable" or found["check"] == "time"


# ── the screen ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("columns", [80, 140])
def test_lines_end_between_words_and_in_the_width(home: Path, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("ISTHMUS_PROT", "3")
    setup("codex", "--gateway", "http://127.0.0.1:9")
    done = doctor()
    paths = [line for line in done.output.splitlines() if len(line) > columns]
    assert all(str(home) in line or "site-packages" in line for line in paths)
    assert done.output == "\n".join(line.rstrip() for line in done.output.split("\n"))
    assert "\x1b" not in done.output
    plain = json.loads(doctor("--json").stdout)
    for each in plain["findings"]:  # nothing is cut
        assert "".join(each["found"].replace("`", "").split()) in "".join(done.output.split())


def test_a_terminal_shows_what_is_being_looked_at_and_no_colour_where_none_is_wanted(home: Path) -> None:
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "100"}
    terminal = Terminal(MAIN, ["doctor"], folder=home, environment=environment)
    try:
        terminal.expect("looking at versions, configuration, keys")
        terminal.expect("Nothing is wrong")
        assert terminal.end() == 0
    finally:
        terminal.close()


def test_a_gateway_starts_without_what_the_doctor_is_made_of() -> None:
    code = (
        "import sys, isthmus.cli.main, isthmus.cli.serve_command, isthmus.server.serve, isthmus.wiring\n"
        "print([name for name in sys.modules if 'doctor' in name or name == 'isthmus.cli.elsewhere'"
        " or 'checkup' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
