"""What the heads say, ours to clients and ours to providers, over real sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flowing import DEEPSEEK, PLAIN, Flow
from isthmus.testing import chat, chat_chunks, reply, stream
from isthmus.testing.replies import chat_error, chat_reply
from isthmus.testing.script import CUT, Answer

LIMITS = {
    "x-ratelimit-limit-requests": "5000",
    "x-ratelimit-limit-tokens": "150000",
    "x-ratelimit-remaining-requests": "4999",
    "x-ratelimit-remaining-tokens": "149984",
    "x-ratelimit-reset-requests": "12ms",
    "x-ratelimit-reset-tokens": "6m0s",
}
FOREIGN = {
    "openai-model": "gpt-other",
    "openai-organization": "org-x",
    "openai-version": "2020-10-01",
    "x-codex-turn-state": "abc",
    "set-cookie": "a=b",
    "x-ratelimit-odd_name": "1",
    "x-ratelimit-long": "9" * 200,
}
CHAT = {"model": PLAIN, "messages": [{"role": "user", "content": "hi"}]}
RESPONSE = {"model": PLAIN, "input": "hi"}
DOORS = {"/v1/responses": RESPONSE, "/v1/chat/completions": CHAT}


def answering(headers: dict[str, str]) -> Callable[[Any], Answer]:
    def answer(request: Any) -> Answer:
        if request.json.get("stream"):
            return stream(chat_chunks("hello"), headers=headers)
        return reply(chat_reply("hello"), headers=headers)

    return answer


def told(flow: Flow, path: str, body: dict[str, Any], **headers: str) -> dict[str, str]:
    """The head of an answer, whole or streamed."""
    if not body.get("stream"):
        return dict(flow.request("POST", path, body, headers).headers)
    with flow.streaming(path, body, headers) as events:
        list(events)
        return dict(events.headers)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("path", DOORS)
def test_the_limits_of_who_answers_come_along_and_nothing_else_of_its_head(
    flow: Flow, path: str, streamed: bool
) -> None:
    flow.script(answering({**LIMITS, **FOREIGN}))
    head = told(flow, path, {**DOORS[path], "stream": streamed})
    assert {name: value for name, value in head.items() if name.startswith("x-ratelimit")} == LIMITS
    assert not {"openai-model", "openai-organization", "openai-version", "x-codex-turn-state", "set-cookie"} & set(head)


def test_codex_is_told_no_model_either(flow: Flow) -> None:
    flow.script(answering({**LIMITS, **FOREIGN}))
    head = told(flow, "/v1/responses", {**RESPONSE, "stream": True}, originator="codex_exec")
    assert "openai-model" not in head


@pytest.mark.parametrize("path", DOORS)
def test_who_refuses_tells_its_limits_too(flow: Flow, path: str) -> None:
    flow.script(reply(chat_error("slow down"), status=429, headers={**LIMITS, **FOREIGN, "retry-after": "7"}))
    answer = flow.post(path, DOORS[path])
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert {name: value for name, value in answer.headers.items() if name.startswith("x-ratelimit")} == LIMITS
    assert "openai-model" not in answer.headers


@pytest.mark.parametrize("streamed", [False, True])
def test_of_who_failed_before_another_answered_nothing_is_told(special: Callable[..., Flow], streamed: bool) -> None:
    flow = special(store="memory", extra=f'[models.fallbacks]\n"{PLAIN}" = ["{DEEPSEEK}"]')
    theirs = {"x-ratelimit-remaining-requests": "17"}
    flow.script(reply(chat_error("slow down"), status=429, headers=LIMITS), answering(theirs))
    head = told(flow, "/v1/responses", {**RESPONSE, "stream": streamed})
    assert {name: value for name, value in head.items() if name.startswith("x-ratelimit")} == theirs


def test_an_answer_without_limits_says_nothing_of_any(flow: Flow) -> None:
    flow.script(answering(LIMITS), chat("ok"))
    for expected in (True, False):
        answer = flow.post("/v1/responses", RESPONSE)
        assert any(name.startswith("x-ratelimit") for name in answer.headers) is expected


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/health"), ("GET", "/v1/models"), ("GET", "/nowhere"), ("PUT", "/v1/models"), ("POST", "/v1/responses")],
)
def test_every_answer_has_its_id_and_its_time(flow: Flow, method: str, path: str) -> None:
    answer = flow.request(method, path, {"input": 3} if method == "POST" else None)
    assert answer.headers["x-request-id"].startswith("req_")
    assert 0 <= int(answer.headers["openai-processing-ms"]) < 60_000


def test_a_stream_has_them_too(flow: Flow) -> None:
    flow.script(chat("ok"))
    head = told(flow, "/v1/responses", {**RESPONSE, "stream": True}, **{"X-Client-Request-Id": "mine-1"})
    assert head["x-request-id"].startswith("req_")
    assert int(head["openai-processing-ms"]) >= 0
    assert head["x-client-request-id"] == "mine-1"


@pytest.mark.parametrize(("given", "status"), [("a" * 512, 200), ("a" * 513, 400), ("caf\xe9", 400), ("a\tb", 400)])
def test_a_clients_own_id_is_told_back_if_it_is_a_line_of_ascii(flow: Flow, given: str, status: int) -> None:
    answer = flow.request("GET", "/v1/models", None, {"X-Client-Request-Id": given})
    assert answer.status == status
    assert answer.headers.get("x-client-request-id") == (given if status == 200 else None)
    if status == 400:
        assert answer.error["param"] == "X-Client-Request-Id"


def test_no_header_of_a_client_travels_to_a_provider(flow: Flow) -> None:
    flow.script(chat("ok"))
    given = {
        "OpenAI-Organization": "org-mine",
        "OpenAI-Project": "proj-mine",
        "X-Client-Request-Id": "mine-1",
        "X-Stainless-Lang": "python",
        "Cookie": "a=b",
    }
    assert flow.request("POST", "/v1/responses", RESPONSE, given).status == 200
    sent = flow.wait_sent().headers
    assert not {name.lower() for name in given} & set(sent)
    assert not set(given.values()) & set(sent.values())


@pytest.mark.parametrize(
    ("chunks", "tells"),
    [
        ([*chat_chunks("half of it")[:2], CUT], "false"),
        ([CUT], None),
    ],
    ids=["after the model spoke", "before"],
)
def test_a_failure_after_the_model_spoke_is_not_to_be_tried_again(flow: Flow, chunks: Any, tells: str | None) -> None:
    flow.script(stream(chunks, done=False))
    answer = flow.post("/v1/chat/completions", CHAT)
    assert answer.status == 502
    assert answer.headers.get("x-should-retry") == tells
