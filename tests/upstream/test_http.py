"""What a provider says on the wire, as deltas and failures: every one of them names it."""

from __future__ import annotations

import logging

import pytest

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.errors import UpstreamFailed
from isthmus.testing import ScriptedUpstream, Step, chat_chunks, drop, error, html_error, reply, stream
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
