"""What Codex does when the model's side fails: try again where that helps, stop with clear words where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from isthmus.testing import CUT, HANG, ScriptedUpstream, chat, chat_chunks, chat_error, error, stream
from real.codex.rig import CLASSIC, LITE, MODELS, OURS, UNKNOWN, real, rig

pytestmark = real

HALF = chat_chunks("a partial answer")[:3]
OVERFLOW = "This model's maximum context length is 131072 tokens"
ONE_RETRY = "request_max_retries = 1\nstream_max_retries = 1"
DEFAULT = ""
"""Codex's own retries: four for a request, five for a stream."""


def test_a_rate_limit_is_waited_for_as_long_as_the_provider_asks(tmp_path: Path) -> None:
    with rig(tmp_path, error(429, "slow down", retry_after=1), chat("Now.")) as it:
        outcome = it.exec("hi", provider=DEFAULT).worked()
    assert outcome.said == ["Now."]
    first, second = it.upstream.requests
    assert second.arrived_at - first.arrived_at >= 1


def test_a_rate_limit_without_a_time_is_tried_again_too(tmp_path: Path) -> None:
    with rig(tmp_path, error(429, "slow down"), chat("Now.")) as it:
        assert it.exec("hi", provider=DEFAULT).worked().said == ["Now."]


def test_a_rate_limit_inside_a_stream_is_waited_for(tmp_path: Path) -> None:
    limited = chat_error("rate limit reached, try again in 1s", code="rate_limit_exceeded")
    with rig(tmp_path, stream([*HALF, limited], done=False), chat("Now.")) as it:
        outcome = it.exec("hi", provider=ONE_RETRY).worked()
    assert outcome.said == ["Now."]
    first, second = it.upstream.requests
    assert second.arrived_at - first.arrived_at >= 1


def test_a_server_error_is_tried_again(tmp_path: Path) -> None:
    with rig(tmp_path, error(500, "boom"), chat("Now.")) as it:
        assert it.exec("hi", provider=ONE_RETRY).worked().said == ["Now."]


@pytest.mark.parametrize("ending", [[CUT], []], ids=["connection cut", "no finish reason"])
@pytest.mark.parametrize("slug", [CLASSIC, LITE, UNKNOWN])
def test_a_cut_stream_is_tried_again(tmp_path: Path, slug: str, ending: list[Any]) -> None:
    with rig(tmp_path, stream([*HALF, *ending], done=False), chat("The whole answer.")) as it:
        outcome = it.exec("hi", slug=slug, provider=ONE_RETRY).worked()
    assert outcome.said == ["The whole answer."]  # the half is neither shown as an answer nor sent back
    assert len(outcome.reconnects) == 1
    assert it.bodies[1]["messages"] == it.bodies[0]["messages"]


def test_a_call_cut_off_by_a_broken_stream_leaves_no_trace_in_the_next_attempt(tmp_path: Path) -> None:
    half = chat_chunks(None, calls=[("c1", "exec_command", {"cmd": "touch danger"})])[:3]
    with rig(tmp_path, stream([*half, CUT], done=False), chat("Done.")) as it:
        assert it.exec("hi", provider=ONE_RETRY).worked().commands == []
        assert list(it.work.iterdir()) == []
    assert it.bodies[1]["messages"] == it.bodies[0]["messages"]


def test_a_failure_closes_the_stream_so_that_codex_does_not_wait_for_its_idle_timer(tmp_path: Path) -> None:
    with rig(tmp_path, stream([*HALF, chat_error("boom")], done=False)) as it:
        outcome = it.exec("hi", provider="stream_max_retries = 0\nstream_idle_timeout_ms = 600000")
    assert "boom" in outcome.failure


FINAL = {
    "wrong key": (error(401, "bad key"), "refused our credentials"),
    "no such model": (error(404, "no such model"), "no such model"),
    "bad request": (error(400, "temperature is wrong"), "temperature is wrong"),
    "no money": (error(402, "Insufficient Balance"), "Quota exceeded"),
    "overflow": (error(400, OVERFLOW), "ran out of room in the model's context window"),
    "overflow in mid-stream": (
        stream([*HALF, chat_error(OVERFLOW)], done=False),
        "ran out of room in the model's context window",
    ),
    "cut by length": (chat("half an answ", finish="length"), "max_output_tokens"),
}


@pytest.mark.parametrize("case", FINAL)
def test_what_no_repetition_cures_is_asked_once_and_said_clearly(tmp_path: Path, case: str) -> None:
    step, words = FINAL[case]
    with rig(tmp_path, step) as it:
        outcome = it.exec("hi", slug=OURS, provider=DEFAULT)
    assert outcome.code == 1
    assert words in outcome.failure
    assert len(it.upstream.requests) == 1


def test_a_schema_that_is_never_met_costs_one_repair_and_no_more(tmp_path: Path) -> None:
    schema = tmp_path / "schema.json"
    schema.write_text(
        '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false}'
    )
    with rig(tmp_path, chat("no JSON here"), chat("nor here")) as it:
        outcome = it.exec("hi", "--output-schema", str(schema), slug=OURS, provider=DEFAULT)
    assert outcome.code == 1
    assert "JSON" in outcome.failure
    assert outcome.reconnects == []
    assert len(it.upstream.requests) == 2


def test_an_overloaded_provider_is_named_as_such(tmp_path: Path) -> None:
    with rig(tmp_path, error(503, "overloaded")) as it:
        assert "at capacity" in it.exec("hi").failure


IMPATIENT = "stream_max_retries = 0\nrequest_max_retries = 0\nstream_idle_timeout_ms = 3000"
LONG = 5.0
"""Seconds of silence, more than that."""


@pytest.mark.parametrize("target", MODELS)
def test_heartbeats_keep_codex_patient_while_the_model_is_silent(tmp_path: Path, target: str) -> None:
    chunks = chat_chunks("Late.")
    with rig(tmp_path, stream([chunks[0], LONG, *chunks[1:]]), target=target) as it:
        assert it.exec("hi", slug=OURS, provider=IMPATIENT).worked().said == ["Late."]


def test_a_model_that_thinks_before_its_first_byte_is_waited_for(tmp_path: Path) -> None:
    with rig(tmp_path, stream(chat_chunks("Late."), after=LONG)) as it:
        assert it.exec("hi", slug=OURS, provider=IMPATIENT).worked().said == ["Late."]


def test_without_heartbeats_codex_would_give_up(tmp_path: Path) -> None:
    with rig(tmp_path, stream([chat_chunks("Late.")[0], HANG], done=False), heartbeat="0s") as it:
        assert "idle timeout" in it.exec("hi", slug=OURS, provider=IMPATIENT).failure


def test_a_websocket_attempt_falls_back_to_http_at_once(tmp_path: Path) -> None:
    with rig(tmp_path, chat("Over HTTP."), server="websockets = false") as it:
        outcome = it.exec("hi", provider="supports_websockets = true").worked()
    assert outcome.said == ["Over HTTP."]
    assert outcome.reconnects == []


def test_with_the_quiet_configuration_codex_dials_nobody_else(tmp_path: Path) -> None:
    with (
        ScriptedUpstream.running(default=error(403, "nobody is to come here")) as trap,
        rig(tmp_path, chat("Hi.")) as it,
    ):
        it.exec("hi", slug=OURS, proxy=trap.url).worked()
        assert [request.target for request in trap.requests] == []
