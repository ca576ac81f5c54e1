"""`isthmus providers probe`, as a shell sees it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from isthmus.cli.commands import app
from isthmus.cli.probe_command import progress_display
from isthmus.providers import check_provider_file, load_provider
from isthmus.testing import ScriptedUpstream, error
from probed_servers import SERVERS, Server, routes

KEY = "sk-very-secret"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


def running(server: Server) -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream.running(default=error(404), routes=routes(server)) as upstream:
        yield upstream


@pytest.fixture
def full() -> Iterator[ScriptedUpstream]:
    yield from running(SERVERS["openai"])


@pytest.fixture
def locked() -> Iterator[ScriptedUpstream]:
    yield from running(Server(key=KEY))


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(app, ["providers", "probe", *arguments], env={"COLUMNS": "120", **environ})


def test_findings_are_shown_and_plain_lines_tell_the_progress(full: ScriptedUpstream) -> None:
    done = run(full.base_url)
    assert done.exit_code == 0, done.output
    assert "asking about tool choices" in done.stderr
    assert "calls several tools at once" in done.stdout
    assert "✓ yes" in done.stdout
    assert "\x1b[" not in done.output
    assert "`--write FILE`".replace("`", "") in done.stderr


def test_the_file_is_written_and_used(full: ScriptedUpstream, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    done = run(full.base_url, "--write", str(path))
    assert done.exit_code == 0, done.output
    assert check_provider_file(path) == []
    provider = load_provider("mine", [tmp_path])
    assert provider.endpoint.base_url == full.base_url
    assert provider.endpoint.auth == "none"
    assert provider.sources[0].startswith(f"probed {full.base_url} on 20")


def test_a_file_is_overwritten_only_when_told_so(full: ScriptedUpstream, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("# precious\n")
    refused = run(full.base_url, "--write", str(path))
    assert refused.exit_code == 1
    assert "--force" in refused.stderr
    assert path.read_text() == "# precious\n"
    assert not full.requests, "nothing is asked for a file that cannot be written"
    assert run(full.base_url, "--write", str(path), "--force").exit_code == 0
    assert check_provider_file(path) == []


@pytest.mark.parametrize("way", ["flag", "variable"])
def test_the_key_is_sent_and_shown_nowhere(locked: ScriptedUpstream, tmp_path: Path, way: str) -> None:
    path = tmp_path / "locked.toml"
    given = ["--key", KEY] if way == "flag" else ["--key-env", "MY_KEY"]
    done = run(locked.base_url, *given, "--write", str(path), MY_KEY=KEY)
    assert done.exit_code == 0, done.output
    assert KEY not in done.output + path.read_text()
    expected = "LOCKED_API_KEY" if way == "flag" else "MY_KEY"
    assert load_provider("locked", [tmp_path]).endpoint.key_env == [expected]
    assert expected in done.stderr


def test_a_wrong_key_is_one_line_without_the_key(locked: ScriptedUpstream) -> None:
    done = run(locked.base_url, "--key", "sk-wrong-one")
    assert done.exit_code == 1
    assert "refuses the key" in done.stderr
    assert "sk-wrong-one" not in done.output


def test_a_terminal_gets_a_bar_that_names_the_question() -> None:
    screen = io.StringIO()
    with progress_display(Console(file=screen, force_terminal=True, width=100)) as tell:
        tell("tools", "does it call tools")
    assert "1 asked" in screen.getvalue()
    assert "tools: does it call tools" in screen.getvalue()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["localhost:8000"], "is not an address"),
        (["http://me:secret@h/v1"], "holds a password"),
        (["http://h/v1", "--key-env", "NOT_SET"], "`NOT_SET`"),
        (["http://h/v1", "--write", "Mine.toml"], "lower case"),
        (["http://h/v1", "--write", "no/where.toml"], "not a folder"),
    ],
    ids=["no scheme", "password", "no variable", "upper case", "no folder"],
)
def test_mistakes_are_explained(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 1
    assert words.replace("`", "") in " ".join(done.stderr.replace("`", "").split())
    assert "secret@" not in done.output


@pytest.mark.parametrize("model", [[], ["--model", "m"]], ids=["no model named", "model named"])
def test_an_endpoint_that_is_not_there_is_said_to_be_out_of_reach(model: list[str]) -> None:
    done = run("http://127.0.0.1:1/v1", *model)
    assert done.exit_code == 1
    assert "cannot be reached" in done.stderr
    assert "start the server, or correct the address" in " ".join(done.stderr.split())
    assert "names no models" not in done.stderr


def test_a_refused_key_is_named_even_when_no_model_is(locked: ScriptedUpstream) -> None:
    done = run(locked.base_url)
    assert done.exit_code == 1
    assert "refuses the key" in done.stderr
