"""Failures as Codex is told of them, and as everybody else is."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from isthmus.errors import UpstreamFailed
from isthmus.server.codex_client import without_retries
from isthmus.server.errors import error_headers
from isthmus.testing import CUT, ScriptedUpstream, Step, chat, chat_chunks, error, stream
from serving import running_gateway_server

CODEX = {"originator": "codex_exec", "user-agent": "codex_exec/0.163.0"}
OVERFLOW = error(400, "This model's maximum context length is 8192 tokens")


def ask(*steps: Step, headers: dict[str, str], **more: Any) -> tuple[int, list[dict[str, Any]] | dict[str, Any]]:
    with ScriptedUpstream.running(steps) as upstream:
        config = (
            f'[server]\nport = 0\n[store]\nurl = "memory:"\n[providers.deepseek]\n'
            f'base_url = "{upstream.base_url}"\napi_key = "k"\nretries = 0\n'
        )
        with running_gateway_server(config) as gateway:
            request = urllib.request.Request(
                f"{gateway.url}/v1/responses",
                json.dumps({"input": "hi", "stream": True, **more}).encode(),
                {"content-type": "application/json", **headers},
            )
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, list(_events(answer.read().decode()))
            except urllib.error.HTTPError as refused:
                with refused:
                    return refused.code, json.loads(refused.read())["error"]


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


def test_codex_reads_of_a_full_window_in_the_stream_and_others_in_the_status() -> None:
    status, events = ask(OVERFLOW, headers=CODEX)
    assert status == 200
    assert isinstance(events, list)
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"] == "context_length_exceeded"
    status, refused = ask(OVERFLOW, headers={})
    assert isinstance(refused, dict)
    assert (status, refused["code"]) == (400, "context_length_exceeded")


@pytest.mark.parametrize(("upstream", "others"), [(401, 403), (404, 404)])
def test_codex_gets_a_status_that_it_does_not_repeat_where_repeating_is_useless(upstream: int, others: int) -> None:
    status, refused = ask(error(upstream, "no"), headers=CODEX)
    assert isinstance(refused, dict)
    assert (status, refused["code"]) == (400, "invalid_prompt")
    assert ask(error(upstream, "no"), headers={})[0] == others


def test_codex_is_not_told_that_a_cut_item_is_done_and_others_are() -> None:
    half = [*chat_chunks("half an answer")[:3], CUT]
    for headers, closed in ((CODEX, False), ({}, True)):
        _, events = ask(stream(half, done=False), headers=headers)
        assert isinstance(events, list)
        kinds = [event["type"] for event in events]
        assert kinds[-1] == "response.failed"
        assert ("response.output_item.done" in kinds) is closed
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert [item["status"] for item in events[-1]["response"]["output"]] == ["incomplete"]


STRICT = {
    "type": "json_schema",
    "name": "answer",
    "strict": True,
    "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


def test_codex_takes_a_schema_that_is_never_met_as_final_and_others_read_the_real_code() -> None:
    prose = [chat("no JSON here"), chat("nor here")]
    for headers, code in ((CODEX, "invalid_prompt"), ({}, "bridge.response.invalid_output_format")):
        _, events = ask(*prose, headers=headers, text={"format": STRICT})
        assert isinstance(events, list)
        assert events[-1]["type"] == "response.failed"
        assert events[-1]["response"]["error"]["code"] == code
        assert "JSON" in events[-1]["response"]["error"]["message"]


def test_what_no_repetition_cures_is_said_to_the_sdks_in_a_header() -> None:
    for code in ("upstream_unauthorized", "insufficient_quota", "bridge.response.invalid_output_format"):
        assert error_headers(UpstreamFailed("x", code=code)) == {"x-should-retry": "false"}
    for code in ("server_error", "upstream_timeout"):
        assert error_headers(UpstreamFailed("x", code=code)) == {}


def test_what_may_pass_by_waiting_stays_as_it_is() -> None:
    failure = UpstreamFailed("slow down", code="rate_limit_exceeded")
    assert without_retries(failure) is failure


def test_a_rate_limit_always_names_a_time() -> None:
    assert error_headers(UpstreamFailed("x", code="rate_limit_exceeded", retry_after=7.4)) == {"retry-after": "8"}
    assert error_headers(UpstreamFailed("x", code="rate_limit_exceeded")) == {"retry-after": "5"}
