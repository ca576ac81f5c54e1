"""The workloads do the work that they are named after: a guard over work that is not done would see it get faster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from bench.workloads import DELTAS, KINDS, deltas, streaming, workloads

EVENTS = {
    "text": "response.output_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "function arguments": "response.function_call_arguments.delta",
    "custom tool input": "response.custom_tool_call_input.delta",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_delta_reaches_the_client(kind: str) -> None:
    told = read(streaming(kind, deltas(kind, DELTAS)).run())
    text = "".join(event["delta"] for event in told if event["type"] == EVENTS[kind])
    assert text.count("token") == sum("token" in json.dumps(delta) for delta in deltas(kind, DELTAS)) >= DELTAS - 2
    assert told[-1]["type"] == "response.completed"


def test_a_stream_in_few_reads_says_the_same_as_one_in_many() -> None:
    given = deltas("text", DELTAS)
    assert streaming("few", given, reads=5).run() == streaming("many", given).run()


def test_a_chat_client_gets_every_delta() -> None:
    out = streaming("chat", deltas("text", DELTAS), client="chat").run()
    assert out.count(b'"content":"token') == DELTAS
    assert b"response." not in out


def test_planning_answers_with_the_body_for_the_provider() -> None:
    codex, long, small = (json.loads(each.run()) for each in workloads()[:3])
    assert len(codex["messages"]) > 20
    assert len(codex["tools"]) > 5
    assert len(json.dumps(long)) > 50_000
    assert [message["content"] for message in small["messages"]] == ["Say hello"]


def test_each_run_begins_anew() -> None:
    for workload in workloads():
        assert workload.run() == workload.run() != b""


def read(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith(b"data: {")]
