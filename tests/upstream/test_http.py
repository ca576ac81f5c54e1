"""The way to a provider, from the configuration to the wire: connections, proxies, certificates, limits, names."""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest

from isthmus import Bridge
from isthmus.client.retry import NO_RETRY
from isthmus.errors import UpstreamFailed
from isthmus.testing import (
    Gate,
    ScriptedUpstream,
    Step,
    chat,
    chat_chunks,
    drop,
    error,
    html_error,
    reply,
    stream,
)
from isthmus.testing.replies import chat_reply
from isthmus.testing.script import CUT, Answer
from isthmus.upstream.http import MAX_REPLY, parse_retry_after
from one_provider import HELLO, one_provider, say, settle
from talking import Talk

STREAMED = {**HELLO, "stream": True}

# ── our own connections ────────────────────────────────────────────────────────────────────────────


class Asked(threading.Thread):
    """A request under way; `answer` waits for it."""

    def __init__(self, talk: Talk) -> None:
        super().__init__(daemon=True)
        self._talk = talk
        self.start()

    def run(self) -> None:
        self._answer = self._talk.post("/v1/responses", HELLO)

    @property
    def answer(self) -> Any:
        self.join(60)
        return self._answer


def _held(gate: Gate) -> Step:
    return reply(chat_reply("held"), after=gate)


def _wait_for_runs(gateway: Any, count: int) -> None:
    """Until so many requests are under way, and have got as far as they can."""
    while len(gateway.gateway.runs) < count:
        settle(gateway)
    settle(gateway)


def test_waiting_for_a_connection_of_ours_is_no_timeout_of_the_provider() -> None:
    gate = Gate()
    one = "max_connections = 1\n[providers.main.timeouts]\nfirst_byte = 600\nconnect = 1000\n"
    with ScriptedUpstream.running([_held(gate), chat("after")]) as upstream:
        with one_provider(upstream, one) as (talk, gateway):
            first = Asked(talk)
            upstream.wait_received(1)
            second = Asked(talk)
            _wait_for_runs(gateway, 2)
            gateway.skip(700)
            refused = second.answer
            assert (refused.status, refused.error["code"]) == (503, "upstream_busy")
            assert "`providers.main.max_connections`" in refused.error["message"]
            assert "retry-after" in refused.headers
            gate.open()
            assert first.answer.json["output_text"] == "held"
            assert say(talk) == "after"
        assert len(upstream.requests) == 2


def test_who_waited_for_a_connection_has_the_whole_time_for_its_answer() -> None:
    first_gate, second_gate = Gate(), Gate()
    settings = "max_connections = 1\n[providers.main.timeouts]\nfirst_byte = 600\n"
    script = [_held(first_gate), _held(second_gate)]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, settings) as (talk, gateway):
        Asked(talk)
        upstream.wait_received(1)
        second = Asked(talk)
        _wait_for_runs(gateway, 2)
        gateway.skip(500)
        first_gate.open()
        upstream.wait_received(2)
        gateway.skip(500)
        second_gate.open()
        assert second.answer.json["output_text"] == "held"


def test_a_place_whose_connections_are_all_ours_is_not_ejected() -> None:
    gates = [Gate(), Gate()]
    settings = (
        'api_keys = ["k1", "k2"]\nmax_connections = 1\n[providers.main.timeouts]\nfirst_byte = 600\nconnect = 1000\n'
    )
    with ScriptedUpstream.running([*map(_held, gates), chat("a"), chat("b")]) as upstream:
        with one_provider(upstream, settings) as (talk, gateway):
            running = [Asked(talk), Asked(talk)]
            upstream.wait_received(2)
            third = Asked(talk)
            _wait_for_runs(gateway, 3)
            gateway.skip(700)
            assert third.answer.error["code"] == "upstream_busy"
            assert talk.get("/ready").status == 200
            for gate in gates:
                gate.open()
            assert [each.answer.status for each in running] == [200, 200]
            say(talk)
            say(talk)
        assert {request.headers["authorization"] for request in upstream.requests[2:]} == {"Bearer k1", "Bearer k2"}


@pytest.mark.parametrize("body", [HELLO, STREAMED], ids=["whole", "streamed"])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_kept_connection_that_is_dead_is_replaced_at_once(reset: bool, body: dict[str, Any]) -> None:
    """The server closes a connection that idled just as the next request comes: no answer, not even a byte."""
    with ScriptedUpstream.running([chat("a"), drop(reset=reset), chat("b")]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, gateway):
            say(talk)
            with gateway.standing_still():  # no backoff: nothing here needs time
                if body is HELLO:
                    assert say(talk) == "b"
                else:
                    with talk.streaming("/v1/responses", body) as events:
                        assert list(events)[-1]["response"]["output_text"] == "b"
        assert [request.connection for request in upstream.requests] == [1, 1, 2]


def test_a_new_connection_that_is_dropped_is_a_failure() -> None:
    with ScriptedUpstream.running([chat("a"), drop(), drop()]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, _):
            say(talk)
            answer = talk.post("/v1/responses", HELLO)
        assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
        assert len(upstream.requests) == 3


def test_a_connection_that_the_server_closed_while_it_idled_is_not_used() -> None:
    with ScriptedUpstream.running([Answer((b"{}",), framing="close"), chat("b")]) as upstream:
        with one_provider(upstream, "retries = 0") as (talk, _):
            talk.post("/v1/responses", HELLO)
            assert say(talk) == "b"
        assert len(upstream.requests) == 2


async def test_the_library_streams_on_after_a_dead_connection_without_an_attempt() -> None:
    with ScriptedUpstream.running([chat("a"), drop(), chat("b")]) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            assert (await bridge.chat("deepseek/m", "hi")).text == "a"
            second = await bridge.chat("deepseek/m", "hi")
            assert (second.text, second.usage.requests) == ("b", 1)


# ── proxies and certificates ───────────────────────────────────────────────────────────────────────


def test_direct_means_that_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ScriptedUpstream.running([chat("straight")]) as upstream, ScriptedUpstream.running([chat("round")]) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with one_provider(upstream, 'proxy = "direct"') as (talk, _):
            assert say(talk) == "straight"
        with one_provider(upstream) as (talk, _):
            assert say(talk) == "round"
        assert (len(upstream.requests), len(proxy.requests)) == (1, 1)


@contextmanager
def self_signed() -> Iterator[tuple[str, list[str]]]:
    """A TLS server that signed its own certificate, and the paths that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["content-length"]))
            body = msgspec.json.encode(chat_reply("over TLS"))
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(HTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a client that does not trust us hangs up: that is what is tested

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).parent / "self_signed.pem")
    with Server(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_address[1]}/v1", asked
        server.shutdown()
        thread.join(60)


def test_a_certificate_that_nobody_vouches_for_is_refused_unless_told_otherwise() -> None:
    with self_signed() as (address, asked):
        with one_provider(address, "retries = 0") as (talk, _):
            answer = talk.post("/v1/responses", HELLO)
            assert (answer.status, answer.error["code"]) == (502, "upstream_unreachable")
            assert "certificate" in answer.error["message"]
            assert asked == []
        with one_provider(address, "retries = 0\nverify_tls = false") as (talk, _):
            assert say(talk) == "over TLS"
        assert len(asked) == 1


# ── limits ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_whole_reply_that_never_ends_is_given_up() -> None:
    piece = b" " * 1_000_000
    with ScriptedUpstream.running([reply(b"")], strict=False) as upstream:
        upstream._script.clear()
        endless = Answer(
            (b'{"choices": [', *[piece] * (MAX_REPLY // len(piece) + 20)),
            headers={"content-type": "application/json"},
            framing="chunked",
        )
        upstream.push(endless)
        with one_provider(upstream) as (talk, _):
            told = talk.post("/v1/responses", HELLO).json
        assert told["status"] == "failed"
        assert f"more than {MAX_REPLY} bytes" in told["error"]["message"]
        assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        (" 0.5 ", 0.5),
        ("0", 0.0),
        ("99999999", 86_400.0),
        ("1e308", 86_400.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 90.0),
        ("Thu Jan  1 00:01:40 1970", 90.0),
        ("Thu, 01 Jan 1970 00:00:05 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("-5", None),
        ("nan", None),
        ("inf", None),
        ("1_000", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_a_told_wait_is_a_sane_number_or_none(said: str | None, seconds: float | None) -> None:
    assert parse_retry_after(said, now=10.0) == seconds
    if seconds is not None:
        assert UpstreamFailed("x", retry_after=seconds).retry_after == seconds


@pytest.mark.parametrize("wait", [1e308, 99_999_999.0])
def test_no_failure_asks_for_more_than_a_day(wait: float) -> None:
    assert UpstreamFailed("x", retry_after=wait).retry_after == 86_400.0
    assert UpstreamFailed("x", retry_after=-1.0).retry_after is None
    assert UpstreamFailed("x", retry_after=float("nan")).retry_after is None


# ── names ──────────────────────────────────────────────────────────────────────────────────────────

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
