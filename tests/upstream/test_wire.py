"""The way to a provider, from the configuration to the bytes: connections, queues, proxies, certificates, framing."""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from isthmus import Bridge
from isthmus.bridge.deltas import Text
from isthmus.client.retry import NO_RETRY
from isthmus.config.schema import ProviderConfig, Server
from isthmus.errors import UpstreamBusy, UpstreamFailed
from isthmus.log import Told
from isthmus.testing import Gate, ScriptedUpstream, Step, chat, drop, reply
from isthmus.testing.fold import plan_for
from isthmus.testing.replies import chat_reply
from isthmus.testing.script import Answer
from isthmus.upstream.http import HttpBackend
from isthmus.upstream.wire import MAX_CONNECTIONS, MAX_QUEUED, MAX_REPLY, Endpoint, Patience, Wire
from one_provider import HELLO, one_provider, say, settle
from raw_server import raw_server
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


def test_who_would_wait_behind_too_many_others_is_told_so_at_once(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    settings = "max_connections = 1\nmax_queued = 1\nretries = 2\n"
    with ScriptedUpstream.running([_held(gate), chat("waited")]) as upstream:
        with (
            caplog.at_level(logging.WARNING, "isthmus.upstream"),
            one_provider(upstream, settings, log="warning") as (talk, gateway),
        ):
            first = Asked(talk)
            upstream.wait_received(1)
            second = Asked(talk)
            _wait_for_runs(gateway, 2)
            with gateway.standing_still():  # nobody waits, no attempt follows
                refused = [talk.post("/v1/responses", HELLO) for _ in range(3)]
            assert [(each.status, each.error["code"]) for each in refused] == [(503, "upstream_busy")] * 3
            for setting in ("`providers.main.max_connections`", "`max_queued`"):
                assert setting in refused[0].error["message"]
            assert "retry-after" in refused[0].headers
            assert talk.get("/ready").status == 200
            gate.open()
            assert [first.answer.json["output_text"], second.answer.json["output_text"]] == ["held", "waited"]
        assert len(upstream.requests) == 2
    told = [record.msg for record in caplog.records if isinstance(record.msg, Told)]
    crowd = [(each.event, each.facts["provider"]) for each in told if each.event.startswith("upstream.")]
    assert crowd == [("upstream.full", "main"), ("upstream.queue.full", "main")]


def test_a_crowd_goes_where_its_queue_is_shortest() -> None:
    gates = [Gate(), Gate()]
    settings = 'api_keys = ["k1", "k2"]\nmax_connections = 1\nmax_queued = 1\n'
    script = [*map(_held, gates), chat("a"), chat("b")]
    with ScriptedUpstream.running(script) as upstream, one_provider(upstream, settings) as (talk, gateway):
        running = [Asked(talk), Asked(talk)]
        upstream.wait_received(2)
        for count in (3, 4):  # one behind each
            running.append(Asked(talk))
            _wait_for_runs(gateway, count)
        assert talk.post("/v1/responses", HELLO).error["code"] == "upstream_busy"
        for gate in gates:
            gate.open()
        assert [each.answer.status for each in running] == [200] * 4


async def test_as_many_streams_as_a_gateway_serves_go_out_at_once_by_default() -> None:
    """An agent holds its stream for minutes: 250 of them once waited behind 100 connections, and nobody was told."""
    assert ProviderConfig().max_connections == Server().max_concurrent == MAX_CONNECTIONS
    gate, streams = Gate(), 250
    with ScriptedUpstream.running(default=_held(gate)) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            asked = [asyncio.create_task(bridge.chat("deepseek/m", "hi")) for _ in range(streams)]
            await upstream.received(streams)
            gate.open()
            assert {(await each).text for each in asked} == {"held"}
        assert upstream.connections == streams


async def test_the_library_can_catch_a_full_queue_by_its_kind() -> None:
    gate = Gate()
    with ScriptedUpstream.running([_held(gate)]) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k", "max_connections": 1, "max_queued": 0}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            first = asyncio.create_task(bridge.chat("deepseek/m", "hi"))
            await upstream.received(1)
            with pytest.raises(UpstreamBusy, match=r"`providers\.deepseek\.max_connections` allows \(1\)"):
                await bridge.chat("deepseek/m", "hi")
            gate.open()
            assert (await first).text == "held"


async def test_in_the_library_any_number_may_wait() -> None:
    more = MAX_QUEUED + 50
    with ScriptedUpstream.running(default=chat("served")) as upstream:
        place = {"base_url": upstream.base_url, "api_key": "k", "max_connections": 2}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            answers = await asyncio.gather(*(bridge.chat("deepseek/m", "hi") for _ in range(more)))
        assert [answer.text for answer in answers] == ["served"] * more
        assert upstream.connections == 2


async def test_a_process_without_a_free_descriptor_does_not_blame_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: aiohttp.ClientSession, *_: Any, **__: Any) -> None:
        raise aiohttp.ClientOSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(aiohttp.ClientSession, "_request", refuse)
    told = await failure(Endpoint("mine", "http://127.0.0.1:9/v1", trust_env=False))
    assert (told.code, told.meaning.eject, "`ulimit -n`" in told.message) == ("upstream_busy", False, True)


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


async def test_half_a_head_on_a_kept_connection_is_an_answer_and_not_asked_for_again() -> None:
    """Something came: the server is there, and has begun to work."""
    ok = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
    counted: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for said in (ok, b"HTTP/1.1 200 OK\r\nx-begun: yes\r\n"):
            head = await reader.readuntil(b"\r\n\r\n")
            counted.append(head)
            await reader.readexactly(2)
            writer.write(said)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        wire = Wire(Endpoint("mine", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", trust_env=False))
        try:
            first = await wire.send(b"{}")
            assert await first.whole() == b"{}"
            first.close()
            with pytest.raises(UpstreamFailed) as failed:
                await wire.send(b"{}")
        finally:
            await wire.aclose()
    assert failed.value.code == "upstream_unreachable"
    assert len(counted) == 2


async def test_no_cookie_of_one_request_goes_along_with_another() -> None:
    answer = reply(chat_reply("hi"), headers={"Set-Cookie": "session=joe; Path=/"})
    with ScriptedUpstream.running([answer, answer]) as upstream:
        wire = Wire(Endpoint("mine", upstream.base_url.replace("127.0.0.1", "localhost"), trust_env=False))
        for _ in range(2):
            (await wire.send(b"{}")).close()
        await wire.aclose()
    assert ["cookie" in request.headers for request in upstream.requests] == [False, False]


# ── answers that break HTTP ────────────────────────────────────────────────────────────────────────

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
FAULTS: dict[str, tuple[bytes, str]] = {
    "br": (HEAD + b"content-encoding: br\r\ncontent-length: 3\r\n\r\nabc", "compressed as `br`"),
    "an unknown encoding": (HEAD + b"content-encoding: snappy\r\ncontent-length: 3\r\n\r\nabc", "as `snappy`"),
    "broken gzip": (HEAD + b"content-encoding: gzip\r\ncontent-length: 20\r\n\r\n" + b"x" * 20, "be unpacked"),
    "a broken chunk": (CHUNKED + b"zz\r\nabc\r\n", "the chunks of its answer are broken"),
    "no length": (HEAD + b"content-length: x\r\n\r\n{}", "its `content-length` is wrong"),
    "two lengths": (HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}", "its `content-length` is wrong"),
    "too long": (HEAD + b"content-length: 2\r\n\r\n{} and more", "longer than its `content-length`"),
    "a huge header": (HEAD + b"x: " + b"y" * 20_000 + b"\r\n\r\n", "headers are too long"),
    "another protocol": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "is not HTTP"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_an_answer_that_breaks_http_is_called_so_not_out_of_reach(case: str) -> None:
    said, words = FAULTS[case]
    with raw_server(said) as server, one_provider(server.base_url, "retries = 0") as (talk, _):
        told = talk.post("/v1/responses", HELLO).json["error"]
    assert told["code"] == "upstream_malformed"
    assert told["message"].startswith("provider `main` breaks the rules of HTTP: ")
    assert words in told["message"]
    assert "cannot be reached" not in told["message"]


async def test_a_chunk_that_breaks_inside_a_stream_ends_it_at_once() -> None:
    """The HTTP library tells nobody: the reader would wait for all of `timeouts.idle`."""
    gate = threading.Event()
    event = b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
    first = CHUNKED + b"%x\r\n%b\r\n" % (len(event), event)
    with raw_server(first, gate, b"zz\r\nabc\r\n", threading.Event()) as server:
        backend = HttpBackend(Endpoint("mine", server.base_url, trust_env=False, patience=Patience(idle=20)))
        heard: list[Any] = []
        with pytest.raises(UpstreamFailed) as failed:
            async with backend.send(plan_for(), {}) as answer:
                async for deltas in answer:
                    heard += deltas
                    gate.set()
        await backend.aclose()
    assert Text("Hel") in heard
    assert (failed.value.code, "the chunks of its answer are broken" in failed.value.message) == (
        "upstream_malformed",
        True,
    )


async def test_informational_answers_without_an_end_are_given_up() -> None:
    with raw_server(endless=b"HTTP/1.1 100 Continue\r\n\r\n" * 100) as server:
        endpoint = Endpoint("mine", server.base_url, trust_env=False, patience=Patience(first_byte=20))
        told = await failure(endpoint)
    assert (told.code, "more than 1000 informational answers" in told.message) == ("upstream_malformed", True)


async def test_a_few_informational_answers_are_fine() -> None:
    body = msgspec.json.encode(chat_reply("after all"))
    early = b"HTTP/1.1 102 Processing\r\n\r\n" * 200 + b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n"
    with raw_server(early, HEAD + b"content-length: %d\r\n\r\n%b" % (len(body), body)) as server:
        place = {"base_url": server.base_url, "api_key": "k"}
        async with Bridge({"deepseek": {"default": place}}, retry=NO_RETRY) as bridge:
            assert (await bridge.chat("deepseek/m", "hi", stream=False)).text == "after all"


async def failure(endpoint: Endpoint) -> UpstreamFailed:
    backend = HttpBackend(endpoint)
    try:
        with pytest.raises(UpstreamFailed) as failed:
            async with backend.send(plan_for(), {}) as answer:
                async for _ in answer:
                    pass
        return failed.value
    finally:
        await backend.aclose()


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


async def test_a_kind_of_proxy_that_is_not_spoken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "socks5://joe:hush@127.0.0.1:9")
    told = await failure(Endpoint("mine", "http://provider.test/v1"))
    assert told.code == "upstream_unreachable"
    assert "`socks5`" in told.message
    assert "hush" not in told.message


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
