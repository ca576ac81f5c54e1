"""The probe beside the real server: what it finds is what the other tests here rely on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from typer.testing import CliRunner

from isthmus.cli.commands import app
from isthmus.cli.probe_compare import claims_more, compare
from isthmus.providers import load_provider
from isthmus.upstream.probe.findings import Findings
from isthmus.upstream.probe.probe import Bounds, probe
from real.models.llama_server import WINDOW
from real.models.rig import MODEL, real

pytestmark = real

BOUNDS = Bounds(seconds=240, requests=60, tokens=4000, answer_tokens=90, answer_seconds=60)


@pytest.fixture(scope="module")
def found(llama: str) -> Findings:
    return asyncio.run(probe(f"{llama}/v1", bounds=BOUNDS))


def test_it_stays_within_its_bounds(found: Findings) -> None:
    assert found.spent.unasked == 0
    assert 30 < found.spent.requests <= BOUNDS.requests
    assert 0 < found.spent.tokens <= BOUNDS.tokens


def test_it_finds_what_is_true_of_chat_completions(found: Findings) -> None:
    assert (found.model, found.context, found.inputs) == (MODEL, WINDOW, ())
    assert found.tells_length
    assert found.logprobs
    assert found.effort_none
    assert found.strict
    assert {"auto", "required"} <= set(found.choices)
    assert "function" not in found.choices
    assert "json_schema" in found.formats
    assert {"stop", "seed", "parallel_tool_calls"} <= set(found.parameters)
    assert found.streaming_usage
    assert found.reasoning_fields == ("reasoning_content",)
    assert (found.repeats, found.after_tool) == (True, True)


def test_it_finds_what_is_true_of_the_native_endpoint(found: Findings) -> None:
    own = found.native
    assert own is not None
    assert (own.limit_field, own.tells_length) == ("max_output_tokens", False)
    assert own.formats == ("text",)
    assert not own.logprobs
    assert own.effort_none
    assert own.strict
    assert {"auto", "required"} <= set(own.choices)
    assert own.inputs == ()
    assert own.streaming_usage


def test_the_file_claims_nothing_that_the_server_does_not_do(found: Findings) -> None:
    rows = compare(load_provider("llama-cpp"), found)
    assert claims_more(rows) == []
    said = {(row.dialect, row.fact): row.standing for row in rows}
    assert said["chat", "context"] == said["chat", "reads"] == said["responses", "reads"] == "agrees"
    assert said["responses", "formats"] == said["responses", "tells that the limit was met"] == "agrees"


def test_the_command_says_so_too(llama: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bounds = ("--max-tokens", "90", "--max-total-tokens", "4000", "--timeout", "60", "--total-time", "240")
    arguments = ("providers", "probe", "llama-cpp", "--compare", "--base-url", f"{llama}/v1", *bounds)
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    assert "✗ claims more" not in done.output
    assert "✓ agrees" in done.output
