"""`isthmus providers probe NAME --compare`: a file beside its server, as a shell sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from isthmus.cli.commands import app
from isthmus.cli.probe_compare import Row, claims_more, compare
from isthmus.providers import load_provider
from isthmus.providers.word.told import Word
from isthmus.testing import ScriptedUpstream, error
from isthmus.upstream.probe.findings import Findings
from probed_servers import SERVERS, ask, routes

Json = dict[str, Any]
WINDOW = [{"id": "some-model", "max_model_len": 8192}]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


@pytest.fixture
def llama() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream.running(default=error(404), routes=routes(SERVERS["llama"], models=WINDOW)) as upstream:
        yield upstream


def run(*arguments: str, columns: int = 120) -> Result:
    return CliRunner().invoke(app, ["providers", "probe", *arguments], env={"COLUMNS": str(columns)})


def standings(rows: list[Row]) -> dict[tuple[str, str], str]:
    return {(row.dialect, row.fact): row.standing for row in rows}


def test_a_server_like_llama_is_what_its_file_says_but_for_its_eyes() -> None:
    found, _ = ask(SERVERS["llama"], models=WINDOW)
    rows = compare(load_provider("llama-cpp"), found)
    # The file cannot know whether the model that was loaded sees, and this server does not say.
    assert {(row.dialect, row.fact) for row in claims_more(rows)} == {("chat", "reads"), ("responses", "reads")}
    found.word = Word(senses={"image": False}, context=8192)
    heard = compare(load_provider("llama-cpp"), found)
    assert claims_more(heard) == [], "one that says so is believed, as a gateway would"
    assert standings(heard)["chat", "context"] == "agrees"
    said = standings(rows)
    assert said["responses", "formats"] == said["responses", "tells that the limit was met"] == "agrees"
    assert said["chat", "strict schemas of tools"] == said["responses", "effort `none`"] == "agrees"
    assert said["chat", "context"] == "agrees"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("limits = { context = 131072 }", [("chat", "context")]),
        # What a user says of a model holds in every dialect.
        (
            'tool_choice = { supported = ["auto", "function"] }',
            [("chat", "tool choices"), ("responses", "tool choices")],
        ),
        ('messages = { developer = "developer", input = [] }', [("chat", "developer role")]),
        ('messages = { empty_content = "null", input = [] }', [("chat", "calls with `content: null`")]),
    ],
    ids=["window", "choices", "developer", "null content"],
)
def test_a_file_that_claims_more_is_told_and_fails(
    llama: ScriptedUpstream, tmp_path: Path, entry: str, told: list[tuple[str, str]]
) -> None:
    blind = "" if "messages" in entry else "messages = { input = [] }\n"
    text = f'extends = "llama-cpp"\n[models."*"]\nexample = "some-model"\n{blind}{entry}\n'
    (tmp_path / "mine.toml").write_text(text)
    arguments = ("mine", "--compare", "--base-url", llama.base_url, "--folder", str(tmp_path))
    done = run(*arguments, "--json")
    assert done.exit_code == 1, done.output
    rows = json.loads(done.stdout)["compared"]
    assert [(row["dialect"], row["fact"]) for row in rows if row["standing"] == "claims more"] == told
    assert "✗ claims more" in run(*arguments).stdout


def test_a_file_that_claims_nothing_false_passes(llama: ScriptedUpstream, tmp_path: Path) -> None:
    text = 'extends = "llama-cpp"\n[models."*"]\nexample = "some-model"\nmessages = { input = [] }\n'
    (tmp_path / "mine.toml").write_text(text)
    done = run("mine", "--compare", "--base-url", llama.base_url, "--folder", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "claims more" not in done.stdout
    assert "requests, " in done.stderr


@pytest.mark.parametrize("columns", [80, 140])
def test_the_table_keeps_to_the_width(llama: ScriptedUpstream, columns: int) -> None:
    done = run("llama-cpp", "--compare", "--base-url", llama.base_url, columns=columns)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.rstrip().endswith("✓ agrees") for line in lines), "the verdict stands on one line"
    if columns == 140:
        assert any("tells that the limit was met" in line for line in lines)


def test_what_was_written_down_agrees_with_what_was_found(tmp_path: Path) -> None:
    for name, server in SERVERS.items():
        with ScriptedUpstream.running(default=error(404), routes=routes(server, models=WINDOW)) as upstream:
            path = tmp_path / f"{name}-probed.toml"
            assert run(upstream.base_url, "--write", str(path)).exit_code == 0
            provider = load_provider(path.stem, [tmp_path])
        found, _ = ask(server, models=WINDOW)
        assert claims_more(compare(provider, found)) == [], name


def test_what_the_answers_did_not_show_is_no_lie_of_the_file() -> None:
    silent = Findings(model="m", unclear={"tools", "logprobs", "effort_none", "inputs", "repeats"})
    said = standings(compare(load_provider("llama-cpp"), silent))
    assert said["chat", "tools"] == said["chat", "log probabilities"] == said["chat", "effort `none`"] == "unknown"
    assert said["chat", "reads"] == "unknown"


def test_comparing_needs_a_name() -> None:
    done = run("http://127.0.0.1:1/v1", "--compare")
    assert done.exit_code == 1
    assert "needs the name of a provider" in done.stderr
