"""`isthmus providers test`, as a shell sees it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from isthmus.cli.checkup_view import SIGNS
from isthmus.cli.commands import app
from isthmus.testing import RecordedRequest, ScriptedUpstream, Step, chat, error, reply

SECRET = "sk-commanded-77aa01b3"
LISTED = reply({"data": [{"id": "a"}, {"id": "b"}]})


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith(("XDG_", "ISTHMUS_")) or name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)


@pytest.fixture
def vendor() -> Iterator[ScriptedUpstream]:
    def guarded(request: RecordedRequest) -> Step:
        return LISTED if request.headers.get("authorization") == f"Bearer {SECRET}" else error(401)

    with ScriptedUpstream.running(
        routes={"/v1/models": guarded, "/open/v1/models": LISTED, "/open/v1/chat/completions": chat("ready")}
    ) as upstream:
        yield upstream


def configure(upstream: ScriptedUpstream) -> None:
    places = {
        "good": f"base_url = '{upstream.base_url}'\napi_key = '{SECRET}'",
        "bad": f"base_url = '{upstream.base_url}'\napi_key = 'wrong'",
        "open": f"base_url = '{upstream.url}/open/v1'\napi_key = '{SECRET}'",
        "a-provider-with-a-name-that-is-rather-long": "base_url = 'http://127.0.0.1:1/v1'",
    }
    sections = [f"[providers.{name}]\nuses = 'openai-compatible'\n{text}\n" for name, text in places.items()]
    Path("isthmus.toml").write_text("\n".join(["[models]", "demo = false", *sections]))
    Path("isthmus.toml").chmod(0o600)


def run(*arguments: str, columns: int = 140, **environ: str) -> Result:
    return CliRunner().invoke(app, ["providers", "test", *arguments], env={"COLUMNS": str(columns), **environ})


@pytest.mark.parametrize("columns", [80, 140])
def test_all_that_are_configured_are_tested_and_fit_the_width(vendor: ScriptedUpstream, columns: int) -> None:
    configure(vendor)
    done = run(columns=columns)
    assert done.exit_code == 1, done.output
    rows = {line.split()[0]: line for line in done.stdout.splitlines() if line and not line.startswith(" ")}
    assert "✓ ready" in rows["good"]
    assert "✗ key refused" in rows["bad"]
    assert "~ reachable" in rows["open"]
    assert "✗ unreachable" in done.stdout
    assert "2 of 4 providers can be used." in done.stdout
    assert max(map(len, done.output.splitlines())) <= columns
    assert SECRET not in done.output
    assert "\x1b[" not in done.output


def test_one_that_can_be_used_is_a_success(vendor: ScriptedUpstream) -> None:
    configure(vendor)
    assert run("good").exit_code == 0
    assert run("open", "good").exit_code == 0
    assert run("good", "bad").exit_code == 1


def test_json_has_the_verdict_its_words_and_what_to_do(vendor: ScriptedUpstream) -> None:
    configure(vendor)
    done = run("good", "bad", "--json")
    assert done.exit_code == 1
    good, bad = json.loads(done.stdout)
    assert good == {
        "provider": "good",
        "ok": True,
        "verdict": "ready",
        "found": "takes the key, and lists 2 models",
        "remedy": None,
        "address": vendor.base_url,
        "credential": "the key in `providers.good.api_key`",
        "models": {"count": 2, "first": ["a", "b"]},
        "seconds": good["seconds"],
        "by": "list",
        "paid": False,
    }
    assert (bad["verdict"], bad["remedy"], bad["models"]) == ("key_refused", "put a good key there", None)
    assert done.stderr == ""


def test_a_request_is_sent_only_when_it_is_asked_for(vendor: ScriptedUpstream) -> None:
    configure(vendor)
    assert "providers test open --ask sends one small request" in " ".join(run("open").stdout.split())
    done = run("open", "--ask", "--model", "a")
    assert done.exit_code == 0
    assert "✓ ready" in done.stdout
    assert "answers with" in done.stdout


def test_without_a_configuration_a_provider_is_tested_as_its_file_has_it() -> None:
    done = run("deepseek", "--timeout", "3")
    assert done.exit_code == 1
    assert "set $DEEPSEEK_API_KEY or providers.deepseek.api_key" in done.stdout


def test_a_broken_section_is_told_and_not_tested_as_something_else(vendor: ScriptedUpstream) -> None:
    Path("isthmus.toml").write_text(
        f"[providers.mine]\nuses = 'openai-compatible'\nbase_ur = '{vendor.base_url}'\n[models]\ndemo = false\n"
    )
    done = run("mine")
    assert done.exit_code == 1
    assert "✗ not configured" in done.stdout
    assert "base_ur" in done.stdout
    assert vendor.requests == []


def test_an_unknown_name_is_one_line() -> None:
    done = run("opnai")
    assert done.exit_code == 1
    assert "did you mean `openai`?" in done.stderr


def test_every_verdict_has_a_sign_and_a_word() -> None:
    from typing import get_args

    from isthmus.upstream.knock import Verdict

    assert set(SIGNS) == set(get_args(Verdict))
    assert all(sign[0] in "✓~✗" and sign[2:] for sign, _ in SIGNS.values())
