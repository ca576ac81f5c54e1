"""Failures as HTTP answers: statuses and headers are read off the one table."""

from __future__ import annotations

import types
from typing import Any

import pytest

from isthmus.bridge.turn import Turn
from isthmus.errors import FAILURES, RequestRefused, UpstreamFailed
from isthmus.server.errors import anthropic_error, error_headers, internal_error
from isthmus.testing import ScriptedUpstream, chat, error
from isthmus.testing.fold import plan_for
from one_provider import HELLO, MODEL, one_provider, say

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
DOORS: dict[str, dict[str, Any]] = {"/v1/responses": HELLO, "/v1/chat/completions": CHAT}


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [401, 403])
def test_a_key_of_ours_that_is_refused_is_a_403_that_nobody_repeats(status: int, streamed: bool, path: str) -> None:
    with ScriptedUpstream.running([error(status, "bad key")]) as upstream, one_provider(upstream) as (talk, _):
        answer = talk.post(path, {**DOORS[path], "stream": streamed})
    assert (answer.status, answer.error["code"]) == (403, "upstream_unauthorized")
    assert answer.headers["x-should-retry"] == "false"
    assert "providers.main.api_key" in answer.error["message"]


@pytest.mark.parametrize("path", DOORS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_told_wait_goes_to_the_client_at_once(streamed: bool, path: str) -> None:
    with ScriptedUpstream.running([error(429, "slow down", retry_after=7)]) as upstream:
        with one_provider(upstream) as (talk, gateway), gateway.standing_still():
            answer = talk.post(path, {**DOORS[path], "stream": streamed})
        assert (answer.status, answer.headers["retry-after"]) == (429, "7")
        assert len(upstream.requests) == 1


def test_a_stock_client_waits_as_long_as_it_was_told_and_asks_as_often_as_it_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    openai = pytest.importorskip("openai")
    waits: list[float] = []
    told = types.SimpleNamespace(sleep=waits.append, time=lambda: 0.0)
    monkeypatch.setattr("openai._base_client.time", told)
    with ScriptedUpstream.running([error(429, "slow down", retry_after=7)] * 3) as upstream:
        with one_provider(upstream) as (_, gateway):
            client = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="k", max_retries=2)
            with pytest.raises(openai.RateLimitError):
                client.responses.create(model=MODEL, input="hi")
        assert waits == [7, 7]
        assert len(upstream.requests) == 3


def test_a_short_told_wait_is_bridged_once() -> None:
    slow = error(429, "slow down", retry_after=1)
    with ScriptedUpstream.running([slow, chat("ok"), slow, slow]) as upstream:
        with one_provider(upstream) as (talk, _):
            assert say(talk) == "ok"
            answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.headers["retry-after"]) == (429, "1")
        assert len(upstream.requests) == 4


@pytest.mark.parametrize(
    ("told", "kept"),
    [("1e308", "86400"), ("99999999", "86400"), ("7.2", "8"), ("-3", "5"), ("nan", "5"), ("soon", "5")],
)
def test_the_header_that_we_send_is_sane(told: str, kept: str) -> None:
    script = [error(429, "slow down", retry_after=told)]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, "retries = 0") as (talk, _):
        assert talk.post("/v1/responses", HELLO).headers["retry-after"] == kept


def test_a_told_wait_inside_a_stream_is_a_number_that_people_can_read() -> None:
    turn = Turn(plan_for(), response_id="r", now=0)
    turn.accepted()
    failure = UpstreamFailed("slow down", code="rate_limit_exceeded", retry_after=1e308)
    assert turn.fail(failure, 0).response["error"] == {
        "code": "rate_limit_exceeded",
        "message": "slow down; try again in 86400s",
    }


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/responses/input_tokens"])
def test_an_unknown_previous_response_is_a_400(path: str) -> None:
    with ScriptedUpstream.running() as upstream, one_provider(upstream) as (talk, _):
        answer = talk.post(path, {**HELLO, "previous_response_id": "resp_nobody"})
    assert (answer.status, answer.error["code"]) == (400, "previous_response_not_found")
    assert answer.error["param"] == "previous_response_id"
    assert answer.error["type"] == "invalid_request_error"


def test_what_cannot_be_cancelled_is_a_400() -> None:
    assert RequestRefused("x", code="not_cancellable").meaning.status == 400


@pytest.mark.parametrize("code", FAILURES)
def test_the_headers_are_those_of_the_row(code: str) -> None:
    meaning = FAILURES[code]
    headers = error_headers(UpstreamFailed("x", code=code))
    assert headers.get("x-should-retry") == ("false" if meaning.final else None)
    assert headers.get("retry-after") == (str(meaning.wait) if meaning.wait else None)
    assert not (meaning.final and meaning.wait), "who is asked to wait may ask again"
    told = error_headers(UpstreamFailed("x", code=code, retry_after=12.0))
    assert told["retry-after"] == "12"


def test_whoever_may_ask_again_after_a_503_or_429_is_told_when() -> None:
    for code, meaning in FAILURES.items():
        if meaning.status in (429, 503) and not meaning.final:
            assert meaning.wait, code


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("missing_api_key", 401, "authentication_error"),
        ("payload_too_large", 413, "request_too_large"),
        ("rate_limit_exceeded", 429, "rate_limit_error"),
        ("draining", 529, "overloaded_error"),
        ("server_is_overloaded", 529, "overloaded_error"),
        ("store_unavailable", 529, "overloaded_error"),
        ("upstream_timeout", 504, "timeout_error"),
        ("server_error", 502, "api_error"),
    ],
)
def test_the_same_row_in_anthropics_shape(code: str, status: int, kind: str) -> None:
    told = anthropic_error(UpstreamFailed("words", code=code), "req_1")
    assert told == (status, {"type": "error", "error": {"type": kind, "message": "words"}, "request_id": "req_1"})


def test_a_bug_of_ours_has_both_shapes() -> None:
    assert internal_error()["error"]["code"] == "internal_error"
    assert internal_error("req_1")["error"]["type"] == "api_error"
