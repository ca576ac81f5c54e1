"""What clients hear when something is wrong: with the request, with the provider, or on the way."""

from __future__ import annotations

import email.utils
import socket
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import pytest

from flowing import FULL, PLAIN, Flow
from isthmus.testing import Step, chat, drop, error, html_error, malformed_json, reply

Json = dict[str, Any]
PATHS = ("/v1/responses", "/v1/chat/completions")

# What the provider answers → status, code and error type for our client, and words it must read.
MAPPING: dict[str, tuple[Step, int, str, str, str]] = {
    "401": (error(401, "bad key sk-upstream-secret"), 403, "upstream_unauthorized", "invalid_request_error", "api_key"),
    "403": (
        error(403, "no access, sk-upstream-secret"),
        403,
        "upstream_unauthorized",
        "invalid_request_error",
        "api_key",
    ),
    "404": (error(404, "no such model"), 404, "model_not_found", "invalid_request_error", "no such model"),
    "400": (error(400, "top_p is odd"), 400, "invalid_prompt", "invalid_request_error", "top_p is odd"),
    "422": (error(422, "cannot process"), 400, "invalid_prompt", "invalid_request_error", "cannot process"),
    "413": (error(413, "too large"), 400, "context_length_exceeded", "invalid_request_error", "too large"),
    "context": (
        error(400, "This model's maximum context length is 8192 tokens"),
        400,
        "context_length_exceeded",
        "invalid_request_error",
        "8192",
    ),
    "402": (error(402, "Insufficient Balance"), 429, "insufficient_quota", "rate_limit_error", "Insufficient"),
    "429": (error(429, "slow down"), 429, "rate_limit_exceeded", "rate_limit_error", "slow down"),
    "500": (error(500, "boom"), 502, "server_error", "server_error", "boom"),
    "503": (error(503, "busy"), 503, "server_is_overloaded", "server_error", "busy"),
    "529": (error(529, "overloaded"), 503, "server_is_overloaded", "server_error", "overloaded"),
    "html 502": (html_error(502), 502, "server_error", "server_error", "HTTP 502"),
    "html 200": (html_error(200, "Welcome"), 502, "server_error", "server_error", "base_url"),
    "redirect": (reply({}, status=302, headers={"Location": "http://x/"}), 502, "server_error", "server_error", "302"),
    "dropped": (drop(), 502, "upstream_unreachable", "server_error", "plain"),
    "reset": (drop(reset=True), 502, "upstream_unreachable", "server_error", "plain"),
    "bare text": (reply("go away", status=500), 502, "server_error", "server_error", "go away"),
    "list of errors": (
        reply(b'[{"error": {"message": "quota exceeded for today", "code": 429}}]', status=429),
        429,
        "insufficient_quota",
        "rate_limit_error",
        "quota exceeded",
    ),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", MAPPING, ids=list(MAPPING))
def test_an_upstream_refusal_keeps_its_meaning(flow: Flow, case: str, streamed: bool, path: str) -> None:
    step, status, code, kind, words = MAPPING[case]
    if case in ("dropped", "reset"):
        _forget_connections(flow)
    flow.script(step)
    before, asked = flow.rows(), len(flow.sent)
    answer = flow.post(path, _hello(path, stream=streamed))
    assert answer.headers["content-type"] == "application/json"
    assert (answer.status, answer.error["code"], answer.error["type"]) == (status, code, kind)
    assert words in answer.error["message"]
    assert b"sk-upstream-secret" not in answer.body
    assert len(flow.sent) == asked + 1
    assert flow.rows() == before, "a request that was refused is not stored"


@pytest.mark.parametrize("given", ["7", "date"])
@pytest.mark.parametrize("path", PATHS)
def test_retry_after_is_kept(flow: Flow, path: str, given: str) -> None:
    for streamed in (False, True):
        now = time.time()
        value = given if given != "date" else email.utils.formatdate(now + 50, usegmt=True)
        flow.script(error(429, "slow down", retry_after=value))
        answer = flow.post(path, _hello(path, stream=streamed))
        assert answer.status == 429
        kept = int(answer.headers["retry-after"])
        # A date has whole seconds, and what has passed since it was written is taken off.
        assert kept == 7 if given == "7" else now + 48 - time.time() <= kept <= 50


@pytest.mark.parametrize("path", PATHS)
def test_a_reply_that_is_not_json_is_a_failure_with_a_status(flow: Flow, path: str) -> None:
    flow.script(malformed_json())
    answer = flow.post(path, _hello(path))
    if path == "/v1/responses":
        assert answer.status == 200
        assert (answer.json["status"], answer.json["error"]["code"]) == ("failed", "server_error")
    else:
        assert (answer.status, answer.error["code"]) == (502, "server_error")


def test_an_upstream_that_is_not_there_is_a_502_that_names_it(special: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: nobody answers, nobody else gets it
        gone = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        section = f'[providers.gone]\nuses = "openai-compatible"\nretries = 0\nbase_url = "{gone}"'
        flow = special(store="memory", extra=section)
        for path in PATHS:
            answer = flow.post(path, _hello(path, model="gone/m"))
            assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
            assert "`gone`" in answer.error["message"]


@pytest.mark.parametrize("path", PATHS)
def test_a_body_that_is_not_json_is_a_400(flow: Flow, path: str) -> None:
    for body, code in ((b"{", "invalid_json"), (b"[]", "invalid_type"), (b"", "invalid_json"), (b"\xff\xfe", None)):
        answer = flow.post(path, body)
        assert answer.status == 400
        assert code is None or answer.error["code"] == code
        assert answer.error["type"] == "invalid_request_error"


def test_absurd_nesting_is_a_400(flow: Flow) -> None:
    for body in (b'{"input":' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"a":' * 100_000):
        assert flow.post("/v1/responses", body).status == 400


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("model", ["nobody/model", "plain/", "/some-model"])
def test_a_model_that_leads_nowhere_is_a_clear_400(flow: Flow, path: str, model: str) -> None:
    answer = flow.post(path, _hello(path, model=model))
    assert (answer.status, answer.error["param"]) == (400, "model")
    assert model.partition("/")[0] in answer.error["message"]
    assert flow.sent == []


def test_no_error_shows_the_key_or_our_insides(flow: Flow) -> None:
    flow.script(error(401, "Incorrect API key provided: sk-upstream-secret"))
    answer = flow.post("/v1/responses", {"model": FULL, "input": "hi"})
    assert b"secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert flow.upstream.requests[-1].headers["authorization"] == "Bearer sk-upstream-secret"


@pytest.mark.parametrize("path", PATHS)
def test_a_body_over_the_limit_is_a_413_whether_its_length_is_told_or_not(special: Any, path: str) -> None:
    flow = special(store="memory", extra="[server]\nmax_body = 2000")
    flow.script(chat("ok"))
    small = _hello(path, text="x" * 1000)
    large = _hello(path, text="x" * 3000)
    assert flow.post(path, small).status == 200
    told = flow.post(path, large)
    assert (told.status, told.error["code"]) == (413, "payload_too_large")
    assert _chunked(flow.server.url, path, 3000).startswith(b"HTTP/1.1 413 ")
    assert len(flow.sent) == 1


def test_every_answer_carries_a_request_id(flow: Flow) -> None:
    ids = {flow.get(path).headers["x-request-id"] for path in ("/health", "/nowhere", "/v1/models", "/v1/responses")}
    assert len(ids) == 4


def _forget_connections(flow: Flow) -> None:
    """The next request opens a connection: one that was kept and turns out to be dead is no failure."""
    flow.script(replace(error(400, "and close"), framing="close"))
    flow.post("/v1/responses", {"model": PLAIN, "input": "forget"})


def _hello(path: str, *, stream: bool = False, model: str = PLAIN, text: str = "hi") -> Json:
    field = "input" if path == "/v1/responses" else "messages"
    return {"model": model, field: [{"role": "user", "content": text}], **({"stream": True} if stream else {})}


def _chunked(url: str, path: str, size: int) -> bytes:
    """A body whose length is not told beforehand; gives the answer's first bytes."""
    where = urlsplit(url)
    with socket.create_connection((where.hostname, where.port), timeout=60) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        connection.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (size, b" " * size))
        return connection.recv(100)
