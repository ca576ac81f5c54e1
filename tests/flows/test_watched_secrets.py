"""A secret in every field, header, address, error and answer: none of it is in any metric or span.

Whatever a client or a provider writes, labels and attributes hold words that we know. So what is looked for here is not
a secret that somebody scrubbed; it is any word that got through.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from collecting import Collector
from isthmus.testing import ScriptedUpstream, Step, chat, chat_chunks, chat_error, error, reply, stream
from isthmus.testing.replies import chat_reply
from leaking import assert_silent
from one_provider import one_provider
from talking import ANTHROPIC, Talk
from waiting import until
from watched import scrape_until

SECRET = "sk-live-0Zq7Kd81mXw4Tn92"
KEY = "zk.Kept-4f8a1c93d7e25b60"
HEADERS = {
    "User-Agent": SECRET,
    "Originator": SECRET,
    "X-Client-Request-Id": SECRET,
    "Authorization": f"Bearer {SECRET}",
    "X-Api-Key": SECRET,
    "Cookie": f"a={SECRET}",
    "Idempotency-Key": SECRET,
    "Traceparent": f"00-{SECRET}-01",
    "Tracestate": f"vendor={SECRET}",
    "Baggage": f"user={SECRET}",
    "OpenAI-Organization": SECRET,
    "Accept-Language": SECRET,
    **ANTHROPIC,
}
TOOL = {"type": "function", "name": SECRET, "description": SECRET, "parameters": {"type": "object", "title": SECRET}}
FIELDS: dict[str, dict[str, Any]] = {
    "/v1/responses": {
        "model": f"main/{SECRET}",
        "input": [{"role": "user", "content": SECRET}],
        "instructions": SECRET,
        "metadata": {SECRET: SECRET},
        "tools": [TOOL],
        "user": SECRET,
        "safety_identifier": SECRET,
        "prompt_cache_key": SECRET,
        SECRET: SECRET,
    },
    "/v1/chat/completions": {
        "model": f"main/{SECRET}",
        "messages": [{"role": "user", "content": SECRET, "name": SECRET}],
        "tools": [{"type": "function", "function": {"name": SECRET, "parameters": {"type": "object"}}}],
        "user": SECRET,
        "stop": [SECRET],
        SECRET: SECRET,
    },
    "/v1/messages": {
        "model": f"main/{SECRET}",
        "messages": [{"role": "user", "content": SECRET}],
        "system": SECRET,
        "max_tokens": 9,
        "metadata": {"user_id": SECRET},
        "tools": [{"name": SECRET, "input_schema": {"type": "object"}}],
    },
    "/v1/embeddings": {"model": f"main/{SECRET}", "input": SECRET, "user": SECRET},
    f"/v1/responses/{SECRET}/cancel": {},
    f"/v1/{SECRET}": {"input": SECRET},
    f"/v1/responses?key={SECRET}": {"input": SECRET, "previous_response_id": SECRET, "conversation": SECRET},
}
TOLD = {SECRET: SECRET, "model": SECRET, "id": SECRET, "system_fingerprint": SECRET}
ANSWERS: dict[str, Step] = {
    "an answer": chat("ok"),
    "a telling answer": reply({**chat_reply(SECRET), **TOLD}, headers={"x-request-id": SECRET}),
    "a stream": stream([{**chunk, **TOLD} for chunk in chat_chunks(SECRET, pieces=4)]),
    "a 401": error(401, f"key {KEY} {SECRET}"),
    "a 400": reply({"error": {"message": SECRET, "type": SECRET, "code": SECRET, "param": SECRET}}, status=400),
    "a 500": reply({"error": {"message": SECRET, "type": SECRET, "code": SECRET}}, status=500),
    "a 418": error(418, SECRET),
    "an error in a stream": stream([chat_error(SECRET)], done=False),
    "no JSON": reply(f"oops {SECRET}".encode()),
}


@contextmanager
def watched(upstream: ScriptedUpstream) -> Iterator[tuple[Talk, Collector]]:
    with Collector.running() as collector:
        settings = f'api_key = "{KEY}"\nretries = 1\nheaders = {{ X-Token = "{KEY}" }}\nquery = {{ code = "{KEY}" }}\n'
        settings += f'[otel]\nenabled = true\nendpoint = "{collector.url}"\nheaders = {{ x-key = "{KEY}" }}\n'
        with one_provider(upstream, settings) as (talk, gateway):
            backend: Any = gateway.gateway.directory.served["main"].backend
            backend._jitter = lambda: -1.0  # it does not wait
            yield talk, collector


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_word_of_anybodys_gets_into_a_metric_or_a_span(answer: str, streamed: bool) -> None:
    with ScriptedUpstream.running(default=ANSWERS[answer], strict=False) as upstream:
        with watched(upstream) as (talk, collector):
            for path, body in FIELDS.items():
                asked = {**body, "stream": True} if streamed and "embeddings" not in path else body
                talk.post(path, asked, HEADERS)
            scrape_until(talk, lambda found: found["isthmus_http_requests_total"] == len(FIELDS))
            plain = talk.get("/metrics").body
            openmetrics = talk.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"}).body
        until(lambda: len(collector.told()) >= len(FIELDS))
        assert_silent([SECRET, KEY], text=plain, openmetrics=openmetrics, otel=collector.everything)
        assert b'model="other"' in plain, "it was asked for, and counted"
