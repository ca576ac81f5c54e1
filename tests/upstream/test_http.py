"""What a provider says on the wire, as deltas and failures: every one of them names it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.errors import UpstreamFailed
from isthmus.testing import ScriptedUpstream, Step, chat_chunks, drop, error, html_error, reply, stream
from isthmus.testing.replies import chat_reply
from isthmus.testing.script import CUT
from one_provider import HELLO, one_provider

STREAMED = {**HELLO, "stream": True}

TROUBLE: dict[str, Step] = {
    "401": error(401, "bad key"),
    "404": error(404, "no such model"),
    "400": error(400, "top_p is odd"),
    "429": error(429, "slow down", retry_after=30),
    "500": error(500, "boom"),
    "402": error(402, "Insufficient Balance"),
    "html 502": html_error(502),
    "html 200": html_error(200, "Welcome"),
    "bare text": reply("go away", status=500),
    "dropped": drop(),
}
LATE: dict[str, Step] = {
    "error in a stream": stream([*chat_chunks("Hel", pieces=1)[:1], {"error": {"message": "boom", "code": 500}}]),
    "no JSON in a stream": stream([*chat_chunks("Hel", pieces=1)[:1], b"data: {nope\n\n"]),
    "cut": stream([*chat_chunks("Hello", pieces=2)[:2], CUT]),
}


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", TROUBLE)
def test_every_refusal_names_its_provider_once(case: str, streamed: bool, path: str) -> None:
    asked = {"messages": [{"role": "user", "content": "hi"}]} if path.endswith("completions") else HELLO
    with ScriptedUpstream.running([TROUBLE[case]]) as upstream, one_provider(upstream, "retries = 0") as (talk, _):
        message = talk.post(path, {**asked, "stream": streamed}).error["message"]
    assert message.startswith("provider `main`")
    assert message.count("`main`") == 1


@pytest.mark.parametrize("case", LATE)
def test_every_failure_inside_a_stream_names_its_provider_once(case: str) -> None:
    with (
        ScriptedUpstream.running([LATE[case]]) as upstream,
        one_provider(upstream, "retries = 0") as (talk, _),
        talk.streaming("/v1/responses", STREAMED) as events,
    ):
        message = list(events)[-1]["response"]["error"]["message"]
    assert message.startswith("provider `main`")
    assert message.count("`main`") == 1


def test_a_failure_inside_a_whole_reply_names_its_provider() -> None:
    script = [reply({"error": {"message": "boom"}})]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, "retries = 0") as (talk, _):
        message = talk.post("/v1/responses", HELLO).json["error"]["message"]
    assert message == "provider `main`: boom"


def test_the_log_names_the_provider(caplog: pytest.LogCaptureFixture) -> None:
    with (
        ScriptedUpstream.running([error(429, "slow down", retry_after=30)]) as upstream,
        caplog.at_level(logging.INFO, "isthmus"),
        one_provider(upstream, log="info") as (talk, _),
    ):
        talk.post("/v1/responses", HELLO)
    assert any("provider `main`: slow down" in record.getMessage() for record in caplog.records)


async def test_exceptions_of_the_library_name_the_provider() -> None:
    for step in (TROUBLE["500"], LATE["error in a stream"]):
        with ScriptedUpstream.running([step]) as upstream:
            place = {"base_url": upstream.base_url, "api_key": "k"}
            async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
                with pytest.raises(UpstreamFailed) as caught:
                    await bridge.chat("deepseek/m", "hi")
        assert caught.value.message == "provider `deepseek`: boom"
        assert caught.value.provider == "deepseek"


# ── an answer that is too long ─────────────────────────────────────────────────────────────────────


def cut_off(response: dict[str, Any], setting: str) -> bool:
    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    said = [each for each in response["isthmus"]["diagnostics"] if each["code"] == "bridge.response.answer_cut"]
    return len(said) == 1 and f"`limits.{setting}`" in said[0]["message"]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_endless_thinking_ends_incomplete_and_says_why(streamed: bool) -> None:
    chunks = chat_chunks(reasoning="x" * 600_000, pieces=100)
    script = [stream(chunks)] if streamed else [reply(chat_reply("", reasoning="x" * 600_000))]
    with (
        ScriptedUpstream.running(script) as upstream,
        one_provider(upstream, "retries = 0\n[limits]\nmax_answer = 300_000") as (talk, _),
    ):
        if streamed:
            with talk.streaming("/v1/responses", STREAMED) as events:
                told = list(events)
            response = told[-1]["response"]
            assert told[-1]["type"] == "response.incomplete"
            assert 280_000 < len(response["output"][0]["content"][0]["text"]) < 350_000, "what came before is kept"
        else:
            response = talk.post("/v1/responses", HELLO).json
    assert cut_off(response, "max_answer")


def test_endless_small_chunks_end_incomplete() -> None:
    with (
        ScriptedUpstream.running([stream(chat_chunks("x" * 300, pieces=300))]) as upstream,
        one_provider(upstream, "retries = 0\n[limits]\nmax_chunks = 100") as (talk, _),
        talk.streaming("/v1/responses", STREAMED) as events,
    ):
        response = list(events)[-1]["response"]
    assert cut_off(response, "max_chunks")


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_an_answer_of_a_million_empty_lists_is_not_read(streamed: bool) -> None:
    hostile = {**chat_reply("hi"), "odd": [[]] * 300_000}
    script = [stream([hostile])] if streamed else [reply(hostile)]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, "retries = 0") as (talk, _):
        if streamed:
            with talk.streaming("/v1/responses", STREAMED) as events:
                response = list(events)[-1]["response"]
        else:
            response = talk.post("/v1/responses", HELLO).json
    assert response["status"] == "failed"
    assert "more than 200,000 values" in response["error"]["message"]
