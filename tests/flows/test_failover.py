"""Retries and fallbacks over real sockets: planned anew each time, reported, never after something was told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isthmus.testing import ScriptedUpstream, chat, chat_chunks, error, stream
from isthmus.testing.script import CUT
from serving import running_gateway_server
from talking import Talk
from wire.oracle import check_stream

TOOL = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}, "strict": False}
HELLO = {"model": "main", "input": "hi", "temperature": 0.5}


@contextmanager
def two_providers(
    folder: Path, *, retries: int = 0, main: str = ""
) -> Iterator[tuple[Talk, ScriptedUpstream, ScriptedUpstream]]:
    with ScriptedUpstream.running() as first, ScriptedUpstream.running() as second:
        toml = f"""
[models]
demo = false
default = "one/model-a"
[models.aliases]
main = "one/model-a"
[models.fallbacks]
main = ["two/deepseek-v4-pro"]
[providers.one]
uses = "openai-compatible"
base_url = "{first.base_url}"
retries = {retries}
{main}
[providers.two]
uses = "deepseek"
base_url = "{second.base_url}"
api_key = "sk-two"
retries = 0
[store]
url = "memory:"
[server]
port = 0
[log]
level = "error"
"""
        with running_gateway_server(toml) as gateway:
            yield Talk(gateway.url), first, second


def codes(response: dict[str, Any]) -> list[str]:
    return [said["code"] for said in response["isthmus"]["diagnostics"]]


def test_a_fallback_answers_planned_for_its_own_target_and_says_so(tmp_path: Path) -> None:
    with two_providers(tmp_path) as (talk, first, second):
        first.push(error(503))
        second.push(chat("from two"))
        response = talk.post("/v1/responses", HELLO).json
        assert response["output_text"] == "from two"
        assert (response["model"], response["isthmus"]["provider"]) == ("deepseek-v4-pro", "two")
        assert "bridge.attempt.failed" in codes(response)
        assert first.requests[0].json["model"] == "model-a"
        assert second.requests[0].json["model"] == "deepseek-v4-pro"
        assert second.requests[0].headers["authorization"] == "Bearer sk-two"


def test_a_fallback_is_sent_what_its_own_model_takes(tmp_path: Path) -> None:
    asked = {
        **HELLO,
        "user": "somebody",
        "reasoning": {"effort": "high"},
        "parallel_tool_calls": False,
        "tools": [TOOL],
    }
    asked["text"] = {"format": {"type": "json_schema", "name": "a", "schema": {"type": "object"}, "strict": False}}
    with two_providers(tmp_path) as (talk, first, second):
        first.push(error(503))
        second.push(chat('{"a": 1}'))
        response = talk.post("/v1/responses", asked).json
        one, two = first.requests[0].json, second.requests[0].json
        # Only the second has a name for the user and a switch for thinking; only the first takes the other two, and a
        # temperature beside thinking.
        assert (two["user_id"], two["thinking"]) == ("somebody", {"type": "enabled"})
        assert not {"user_id", "thinking"} & set(one)
        assert (one["parallel_tool_calls"], one["temperature"]) == (False, 0.5)
        assert not {"parallel_tool_calls", "temperature"} & set(two)
        assert (one["response_format"]["type"], two["response_format"]["type"]) == ("json_schema", "json_object")
        # What is reported is what was done for the one that answered.
        said = {each["path"]: each["action"] for each in response["isthmus"]["diagnostics"]}
        assert said.get("parallel_tool_calls") == "ignored"
        assert "user" not in said


def test_a_fallback_streams_like_any_other(tmp_path: Path) -> None:
    with two_providers(tmp_path) as (talk, first, second):
        first.push(error(429))
        second.push(chat("from two"))
        with talk.streaming("/v1/responses", {**HELLO, "stream": True}) as events:
            told = list(events)
        response = check_stream(told)
        assert response["output_text"] == "from two"
        assert "bridge.attempt.failed" in codes(response)


def test_when_all_fail_the_last_failure_keeps_its_status(tmp_path: Path) -> None:
    with two_providers(tmp_path) as (talk, first, second):
        first.push(error(503))
        second.push(error(429, retry_after=7))
        answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")


def test_a_request_that_already_streamed_is_never_started_over(tmp_path: Path) -> None:
    with two_providers(tmp_path, retries=3) as (talk, first, second):
        first.push(stream([*chat_chunks("Hello there", pieces=2)[:2], CUT]))
        with talk.streaming("/v1/responses", {**HELLO, "stream": True}) as events:
            response = check_stream(list(events))
        assert response["status"] == "failed"
        assert len(first.requests) == 1
        assert second.requests == []


def test_a_passing_failure_is_retried_at_the_same_provider(tmp_path: Path) -> None:
    with two_providers(tmp_path, retries=1) as (talk, first, second):
        first.push(error(500), chat("second time"))
        response = talk.post("/v1/responses", HELLO).json
        assert response["output_text"] == "second time"
        assert len(first.requests) == 2
        assert second.requests == []


def test_several_keys_are_used_in_turn_and_a_refused_one_is_left_out(tmp_path: Path) -> None:
    with two_providers(tmp_path, retries=1, main='api_keys = ["k1", "k2"]') as (talk, first, _):
        first.push(error(429), chat("a"), chat("b"), chat("c"))
        for expected in "abc":
            assert talk.post("/v1/responses", HELLO).json["output_text"] == expected
        used = [request.headers["authorization"] for request in first.requests]
        assert used == ["Bearer k1", "Bearer k2", "Bearer k2", "Bearer k2"]
