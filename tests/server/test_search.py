"""`/v1/alpha/search` over HTTP: Codex's own shapes, and a 200 with words whatever happens."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from isthmus.testing import ScriptedUpstream, reply
from serving import GatewayThread, running_gateway_server
from strict_search import KEY, strict
from talking import Talk

BASE = '[server]\nport = 0\n{server}\n[store]\nurl = "memory:"\n{more}\n'
DEMO = '[search]\nbackend = "demo"\nopen_pages = true\n'
CODEX = {
    "id": "0199-session",
    "model": "gpt-5.5",
    "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "search otters"}]}],
    "commands": {
        "search_query": [{"q": "otters", "recency": 7, "domains": ["example.com"]}],
        "response_length": "short",
    },
    "settings": {"allowed_callers": ["direct"], "external_web_access": True},
    "max_output_tokens": 10000,
}


@pytest.fixture(scope="module")
def gateway() -> Iterator[GatewayThread]:
    with running_gateway_server(BASE.format(server="", more=DEMO)) as running:
        yield running


def post(gateway: GatewayThread, body: Any, path: str = "/v1/alpha/search", **headers: str) -> tuple[int, Any]:
    answer = Talk(gateway.url).post(path, body if isinstance(body, bytes) else json.dumps(body).encode(), headers)
    return answer.status, answer.json


def test_what_codex_sends_is_answered_in_the_shape_that_it_reads(gateway: GatewayThread) -> None:
    status, answer = post(gateway, CODEX)
    assert status == 200
    assert set(answer) == {"output", "encrypted_output", "results"}
    assert "[turn0search0] otters: wiki\nhttps://example.com/wiki/otters" in answer["output"]
    assert answer["results"][0] == {
        "type": "text_result",
        "ref_id": "turn0search0",
        "url": "https://example.com/wiki/otters",
        "title": "otters: wiki",
        "snippet": answer["results"][0]["snippet"],
    }
    _, opened = post(gateway, {**CODEX, "commands": {"open": [{"ref_id": "turn0search0"}]}}, "/alpha/search")
    assert "opens only pages that it has found itself" in opened["output"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"commands": 3}', b"\xff", b"[" * 5000])
def test_a_request_that_is_none_is_answered_in_words(gateway: GatewayThread, body: bytes) -> None:
    status, answer = post(gateway, body)
    assert status == 200
    assert answer["output"]


def test_a_body_that_is_too_large_is_answered_in_words() -> None:
    with running_gateway_server(BASE.format(server="max_body = 1000", more=DEMO)) as gateway:
        status, answer = post(gateway, b"x" * 5000)
    assert status == 200
    assert answer["output"].startswith("The search failed: the request body is larger than 1000 bytes")


def test_a_wrong_key_stays_a_401() -> None:
    with running_gateway_server(BASE.format(server='api_keys = ["the-key"]', more=DEMO)) as gateway:
        assert post(gateway, CODEX)[0] == 401
        assert post(gateway, CODEX, authorization="Bearer the-key")[0] == 200


def test_without_a_backend_it_says_what_is_missing() -> None:
    with running_gateway_server(BASE.format(server="", more="")) as gateway:
        status, answer = post(gateway, CODEX)
    assert status == 200
    assert "its operator must set `[search] backend`" in answer["output"]


def test_a_mistake_of_ours_is_words_too(gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*given: Any) -> Any:
        raise RuntimeError("the-insides")

    monkeypatch.setattr(gateway.gateway.search, "answer", broken)
    status, answer = post(gateway, CODEX)
    assert (status, answer["output"]) == (200, "The search failed: the gateway has a mistake, which its log tells of.")


def test_the_key_of_the_engine_is_in_no_answer_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    def repeat(request: Any) -> Any:
        return reply({"error": {"detail": f"bad token {request.headers['x-subscription-token']}"}}, status=422)

    with ScriptedUpstream.running(default=repeat) as engine, caplog.at_level("DEBUG"):
        more = f'[search]\nbackend = "brave"\nurl = "{engine.url}"\napi_key = "{KEY}"\n'
        with running_gateway_server(BASE.format(server="", more=more)) as gateway:
            _, answer = post(gateway, CODEX)
    assert "HTTP 422: bad token <redacted>" in answer["output"]
    assert KEY not in json.dumps(answer) + caplog.text


def test_a_searxng_is_asked_and_its_answer_told() -> None:
    with ScriptedUpstream.running(default=strict("searxng")) as engine:
        more = f'[search]\nbackend = "searxng"\nurl = "{engine.url}"\n'
        with running_gateway_server(BASE.format(server="", more=more)) as gateway:
            status, answer = post(gateway, {**CODEX, "commands": {"search_query": [{"q": "otters"}]}})
    assert status == 200
    assert [each["url"] for each in answer["results"]] == [
        "https://otters.example/play",
        "https://rivers.example/otters",
        "https://docs.otters.example/food",
    ]
