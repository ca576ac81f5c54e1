"""The probe beside the real server: what it finds is what the other tests here rely on."""

from __future__ import annotations

import asyncio

import pytest

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
    # Whether the model that was loaded reads images, the server's own word says, not the file.
    assert {row.fact for row in claims_more(compare(load_provider("llama-cpp"), found))} <= {"reads"}
